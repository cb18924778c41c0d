#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "allreduce/communicator.h"
#include "allreduce/number_all_gather.h"
#include "allreduce/transport.h"
#include "bench/all_reduce/ranks.h"
#include "runtime/device.h"

namespace cnn::bench {

class Interruption;

// Seconds of one reduction, or of what it is compared with: each sample that of the slowest rank.
struct Timing {
  double least = 0, median = 0;
};
Timing timing_of(std::vector<double> samples);  // at least one

// Returns the larger of two differences to a right result; not a number if either is none.
double worse_of(double one, double other);

// Reductions that are timed in turn, so that a disturbance of the machine meets all alike.
struct InterleavedTiming {
  int warm_up = 0, rounds = 1;
  int repetitions = 1;  // of each candidate in a round; the time is that of one
  std::vector<std::function<void()>> candidates = {};
};

// One rank of the benchmark: buffers that are reduced, checked and timed. All ranks do the same in
// the same order.
class Reduction {
 public:
  // References must outlive it. most: elements of the largest buffer.
  Reduction(const RankEnvironment& environment, const allreduce::Settings& settings,
            std::size_t most, Interruption& interruption);

  // The gradients of a network, bucket after bucket, or one buffer. Numbers of buckets are used
  // once.
  // On a device each bucket is prepared as a step's compilation does.
  void add_bucket(std::size_t elements);
  void remove_buckets();

  void reduce();  // all buckets, as a mean: values stay as large as they are
  // Fills the buckets with whole numbers, sums them over all ranks, and returns the largest
  // difference to a sum that is made without them; the same on all ranks. Not a number if one of
  // the sums is none.
  double error();

  // Returns the timing of each candidate, the same on all ranks; nothing if they stop.
  std::vector<Timing> time(const InterleavedTiming& timing);
  // Asks all ranks whether one of them wants to end, as the flags of interruption do.
  void agree();
  // All have agreed to end.
  bool stops() const { return stops_; }

  bool first() const { return transport_.rank() == 0; }
  const allreduce::simd::Loops& loops() const { return loops_; }
  // The choice for a bucket that has been reduced; without an algorithm where a device's library
  // chooses.
  allreduce::Candidate choice(std::size_t bucket) const;
  bool on_device() const { return exchange_ != nullptr; }

 private:
  void reduce_all(float factor);
  void reduce_on_device(float factor);
  // Between the host's copy of the buckets and the device.
  void upload();
  void download();
  std::span<float> on_device(std::span<const float> bucket);

  double stop_reason() const;
  void hear(std::span<const double> numbers, std::size_t each);

  allreduce::Transport& transport_;
  const allreduce::simd::Loops& loops_;
  Interruption& interruption_;
  bool speaks_for_process_, stops_ = false;
  allreduce::NumberAllGather numbers_;
  std::unique_ptr<allreduce::BucketCommunicator> communicator_;  // null: a device exchanges
  RankExchange* exchange_ = nullptr;
  std::unique_ptr<Stream> stream_;    // of the device
  Buffer device_room_, host_buffer_;  // where it reduces, and the host's copy of that
  std::span<float> buffer_;
  std::vector<std::span<float>> buckets_;
  std::size_t first_ = 0;  // number of the first bucket
};

// Copies between buffers of this rank alone.
class Copy {
 public:
  explicit Copy(std::size_t elements) : from_(elements, 1.0F), to_(elements, 2.0F) {}
  void operator()() const;

 private:
  std::vector<float> from_;
  mutable std::vector<float> to_;
};

// Reads and writes a buffer of this rank alone in place, which is what a reduction does to its
// memory at the least.
class Update {
 public:
  Update(const allreduce::simd::Loops& loops, std::size_t elements)
      : loops_(loops), values_(elements, 1.0F) {}
  void operator()() const;

 private:
  const allreduce::simd::Loops& loops_;
  mutable std::vector<float> values_;
};

// Reductions of so many bytes in a row that a clock can tell their time.
int repetitions(std::size_t bytes);

}  // namespace cnn::bench
