#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/choose.h"
#include "allreduce/cost.h"
#include "allreduce/engine.h"
#include "allreduce/fault.h"
#include "allreduce/gathering.h"
#include "allreduce/simd/table.h"
#include "allreduce/stall.h"
#include "allreduce/transport.h"
#include "runtime/communicator.h"

namespace cnn::allreduce {

// Reduces each bucket by the algorithm that the model finds the fastest for its size. The
// preparations of a bucket's first reduction serve all later ones, which allocate nothing.
class BucketCommunicator final : public Communicator {
 public:
  // References must outlive it.
  BucketCommunicator(Transport& transport, const simd::Loops& loops, Settings settings);

  int rank() const override { return transport_.rank(); }
  int ranks() const override { return transport_.ranks(); }
  // Throws Error if the ranks' buckets of that number differ, and PeerLost that names step, bucket
  // and phase.
  void all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override;

  // All buckets may lie elsewhere in their room from now on: all ranks call it between the same two
  // reductions.
  void forget_places();

  // Returns what was chosen for a bucket that has been reduced.
  const Candidate& choice(std::size_t bucket) const { return buckets_[bucket].choice; }
  std::size_t buckets() const { return buckets_.size(); }
  const Settings& settings() const { return settings_; }

 private:
  struct Bucket {
    std::vector<std::span<float>> pieces;
    Candidate choice;
    std::unique_ptr<Engine> engine;
  };
  // Rank 0's choice for buckets of so many elements, made once for each size: all ranks ask for the
  // same sizes in the same order.
  const Candidate& choose(std::size_t elements);
  void reduce(std::size_t bucket, std::span<const std::span<float>> pieces, float factor);
  std::string place_in(std::size_t bucket) const;
  void prepare(std::size_t number, std::span<const std::span<float>> pieces);
  void compare(std::size_t number, std::span<const std::span<float>> pieces);
  void compare_results(std::size_t number);
  void prove(std::size_t number);
  bool all_have(std::uint64_t hash);

  Settings settings_;
  WarningTransport warning_;
  std::optional<FaultyTransport> fault_;  // if it is this rank's
  Transport& transport_;
  const simd::Loops& loops_;
  std::vector<Bucket> buckets_;
  std::span<float> words_;  // that ranks compare
  std::unique_ptr<Engine> compare_;
  std::map<std::size_t, Candidate> choices_;  // by elements
  Broadcast choice_;                          // of a choice
  std::vector<std::uint64_t> reductions_;     // that have begun, by bucket
  bool compares_ = false;                     // ranks tell one another words, not gradients
};

}  // namespace cnn::allreduce
