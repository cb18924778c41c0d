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

// Returns the bytes of a rank's memory that peers can address: the memory of its steps, and buffers
// for other collectives.
std::size_t segment_bytes_of(const MemoryLimits& memory);

// The time of a rank in the reduction of a bucket, in seconds of the rank's clock.
struct ReductionTime {
  std::size_t bucket = 0;
  double start = 0, end = 0;
};

// One rank's exchange of gradients, with timing.
class RankExchange final : public Communicator {
 public:
  // Measures the links first, if the flags request it and there is an exchange. instruction_sets:
  // of the Backend. All ranks construct theirs at the same time. The transport must outlive it.
  RankExchange(allreduce::Transport& transport, const allreduce::Topology& topology,
               const Config& config, std::string_view instruction_sets);

  int rank() const override { return buckets_.rank(); }
  int ranks() const override { return buckets_.ranks(); }
  void all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override;
  void release(std::size_t bucket) override { buckets_.release(bucket); }
  void reserve(std::size_t elements) override { buckets_.reserve(elements); }

  // Throws Error, with a setting that works, if the flags leave no algorithm for the largest bucket
  // of this plan. Call it before the first step.
  void check_buckets(const Config& config, const StepPlan& plan) const;

  // Makes MPI sum from now on. The world must outlive this object.
  void reduce_by(allreduce::World& world) { world_ = &world; }

  const Exchange& rules() const { return rules_; }
  // Returns the choice for a bucket that has been reduced here.
  const allreduce::Candidate& choice(std::size_t bucket) const { return buckets_.choice(bucket); }
  // Declares that gradients have new addresses on all ranks; not while a step runs.
  void gradients_move() { buckets_.invalidate_addresses(); }

  // Return the time in reductions since the start, or since forget_times(); not while a step runs.
  double seconds() const { return seconds_; }
  double cpu_seconds() const { return cpu_seconds_; }  // CPU time within them
  void forget_times() {
    seconds_ = cpu_seconds_ = 0;
    reductions_.clear();
  }
  // Returns the reductions since the last call; the first call returns none and starts the
  // recording. Not while a step runs.
  std::vector<ReductionTime> take_reductions() {
    keeps_ = true;
    return std::exchange(reductions_, {});
  }

  // Returns the context with steps that exchange through this object, in memory that the
  // transport's peers can address, or on the device, see exchange_on_device(). All ranks call it
  // together. This object must outlive the context.
  RankContext serve(RankContext context);
  // Returns the communicator of a device with its own memory, after serve(); null for others.
  StreamCommunicator* on_device() const { return on_device_.get(); }
  // Returns whether this object times reductions; false if the device performs them.
  bool is_timed() const { return timed_; }

 private:
  allreduce::Transport& transport_;
  Exchange rules_;
  allreduce::BucketCommunicator buckets_;
  void reduce_by_world(std::size_t bucket, std::span<const std::span<float>> pieces, float factor);

  allreduce::World* world_ = nullptr;  // if not null, it sums instead of buckets_
  std::vector<float> joined_;          // contiguous copy of the pieces for world_
  CommFlags flags_;
  std::shared_ptr<StreamCommunicator> on_device_;
  bool timed_ = true, keeps_ = false;
  std::vector<ReductionTime> reductions_;
  double seconds_ = 0, cpu_seconds_ = 0;
};

}  // namespace cnn::bench
