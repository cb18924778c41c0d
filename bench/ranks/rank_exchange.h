#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "allreduce/communicator.h"
#include "allreduce/transport.h"
#include "allreduce/world.h"
#include "bench/ranks/exchange_flags.h"
#include "runtime/communicator.h"
#include "runtime/program.h"

namespace cnn::bench {

struct MemoryLimits;
struct RankContext;

// Bytes of the memory that peers of a rank see: what its steps may take, and what ranks tell one
// another beside them.
std::size_t segment_bytes_of(const MemoryLimits& memory);

// When a rank was in the reduction of a bucket, by its clock in seconds.
struct ReductionTime {
  std::size_t bucket = 0;
  double start = 0, end = 0;
};

// One rank's exchange of gradients, timed.
class RankExchange final : public Communicator {
 public:
  // Measures the links first, where the flags want it and there is something to exchange.
  // instruction_sets: as Backend's. All ranks make theirs at the same time. The transport must
  // outlive it.
  RankExchange(allreduce::Transport& transport, const allreduce::Topology& topology,
               const Config& config, std::string_view instruction_sets);

  int rank() const override { return buckets_.rank(); }
  int ranks() const override { return buckets_.ranks(); }
  void all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override;

  // Throws Error, which names a setting that does, if the flags leave no algorithm for the buckets
  // of this plan: before the first step, and for the largest of them.
  void check_buckets(const Config& config, const StepPlan& plan) const;

  // From now on MPI adds. The world must outlive this.
  void reduce_by(allreduce::World& world) { world_ = &world; }

  const Exchange& rules() const { return rules_; }
  // The choice for a bucket that has been reduced here.
  const allreduce::Candidate& choice(std::size_t bucket) const { return buckets_.choice(bucket); }
  // Gradients lie elsewhere from now on, on all ranks; not while a step runs.
  void gradients_move() { buckets_.invalidate_addresses(); }

  // In reductions since the start, or since forget_times(); not while a step runs.
  double seconds() const { return seconds_; }
  double cpu_seconds() const { return cpu_seconds_; }  // of them: of the processor
  void forget_times() {
    seconds_ = cpu_seconds_ = 0;
    reductions_.clear();
  }
  // Those since the last call; the first one gives none and has all later ones kept. Not while a
  // step runs.
  std::vector<ReductionTime> take_reductions() {
    keeps_ = true;
    return std::exchange(reductions_, {});
  }

  // Returns the context with steps that exchange by this, in memory that the transport's peers see,
  // or on the device, see exchange_on_device(). All ranks call it together. This must outlive it.
  RankContext serve(RankContext context);
  // The communicator of a device with memory of its own, once it is served; null for others.
  StreamCommunicator* on_device() const { return on_device_.get(); }
  // Whether it hears of reductions: else they are a device's own.
  bool is_timed() const { return timed_; }

 private:
  allreduce::Transport& transport_;
  Exchange rules_;
  allreduce::BucketCommunicator buckets_;
  void reduce_by_world(std::size_t bucket, std::span<const std::span<float>> pieces, float factor);

  allreduce::World* world_ = nullptr;  // that adds, if not buckets_
  std::vector<float> joined_;          // pieces for it
  CommFlags flags_;
  std::shared_ptr<StreamCommunicator> on_device_;
  bool timed_ = true, keeps_ = false;
  std::vector<ReductionTime> reductions_;
  double seconds_ = 0, cpu_seconds_ = 0;
};

}  // namespace cnn::bench
