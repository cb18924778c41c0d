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
#include "allreduce/repeated_all_gather.h"
#include "allreduce/simd/table.h"
#include "allreduce/stall.h"
#include "allreduce/transport.h"
#include "runtime/communicator.h"

namespace cnn::allreduce {

// The all-reduce of gradient buckets. Each bucket is reduced by the algorithm that the cost model
// finds the fastest for its size. The first reduction of a bucket prepares all later ones, which
// allocate nothing.
class BucketCommunicator final : public Communicator {
 public:
  // References must outlive it.
  BucketCommunicator(Transport& transport, const simd::Loops& loops, Settings settings);

  int rank() const override { return transport_.rank(); }
  int ranks() const override { return transport_.ranks(); }
  // Throws Error if the ranks disagree about the bucket, and PeerLost with step, bucket and phase.
  void all_reduce(std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override;

  // Tells that buckets may have other addresses from now on. All ranks call it between the same two
  // reductions.
  void invalidate_addresses();

  // Frees what the bucket's reductions need; its message buffer serves the next bucket that is
  // prepared, so that memory does not grow with the number of buckets. All ranks call it between
  // the same two reductions. The next reduction of the bucket prepares it again.
  void release(std::size_t bucket) override;

  // Takes the message buffer of a bucket of so many elements, which released buckets hand on.
  void reserve(std::size_t elements) override;

  // Returns the choice for a bucket that has been reduced.
  const Candidate& choice(std::size_t bucket) const { return buckets_[bucket].choice; }
  std::size_t buckets() const { return buckets_.size(); }
  const Settings& settings() const { return settings_; }

 private:
  struct Bucket {
    std::vector<std::span<float>> pieces;
    Candidate choice;
    std::unique_ptr<Engine> engine;
  };
  // Returns the choice of rank 0 for buckets of so many elements, which it makes once per size. All
  // ranks ask for the same sizes in the same order.
  const Candidate& choose(std::size_t elements);
  void reduce(std::size_t bucket, std::span<const std::span<float>> pieces, float factor);
  std::string position_in(std::size_t bucket) const;
  void prepare(std::size_t number, std::span<const std::span<float>> pieces);
  void compare(std::size_t number, std::span<const std::span<float>> pieces);
  void compare_results(std::size_t number);
  void prove(std::size_t number);
  bool all_have(std::uint64_t hash);
  // Returns a released message buffer of at least so many bytes; empty: the engine allocates one.
  Bytes take_spare(std::size_t bytes);
  std::size_t message_bytes(std::size_t elements) const;  // 0: messages lie in the bucket

  Settings settings_;
  StallWarningTransport warning_;
  std::optional<FaultyTransport> fault_;  // only on the rank that it concerns
  Transport& transport_;
  const simd::Loops& loops_;
  std::vector<Bucket> buckets_;
  Bytes spare_;             // the message buffer of a released bucket
  std::span<float> words_;  // the buffer in which ranks compare hashes
  std::unique_ptr<Engine> compare_;
  std::map<std::size_t, Candidate> choices_;  // by elements
  Broadcast choice_;                          // broadcasts a choice
  std::vector<std::uint64_t> reductions_;     // by bucket: how many have begun
  bool compares_ = false;                     // whether a comparison of hashes is under way
};

}  // namespace cnn::allreduce
