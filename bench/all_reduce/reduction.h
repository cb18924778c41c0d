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

// The seconds of one reduction, or of the operation that it is compared with. Each sample is the
// time of the slowest rank.
struct Timing {
  double least = 0, median = 0;
};
// Returns the minimum and the median of the samples, of which there is at least one.
Timing timing_of(std::vector<double> samples);

// Returns the larger of two errors; NaN if either is NaN.
double worse_of(double one, double other);

// An interleaved measurement: in every round each candidate runs, so that a disturbance of the
// machine affects all candidates alike.
struct InterleavedTiming {
  int warm_up = 0, rounds = 1;
  int repetitions = 1;  // of each candidate in a round; the time is that of one
  std::vector<std::function<void()>> candidates = {};
};

// One rank of the benchmark: buffers that are reduced, checked and timed. All ranks make the same
// calls in the same order. Functions that communicate throw PeerLost if a rank is lost.
class Reduction {
 public:
  // References must outlive it. most: elements of the largest buffer.
  Reduction(const RankEnvironment& environment, const allreduce::Settings& settings,
            std::size_t most, Interruption& interruption);

  // Adds a buffer to be reduced: one bucket of a network's gradients, or a single buffer. Bucket
  // numbers are not reused after remove_buckets(), which gives the memory of their reductions to
  // later buckets that need no more. On a device it prepares the bucket as compiling a step does.
  void add_bucket(std::size_t elements);
  // Takes the memory of the exchange for buckets of at most so many elements, one at a time.
  void reserve(std::size_t elements);
  void remove_buckets();

  // Reduces all buckets to their mean over the ranks, so that repeated calls keep the magnitudes.
  void reduce();
  // Fills the buckets with integers, sums them over all ranks and returns the largest error against
  // the expected sums, the same on all ranks. Returns NaN if a sum is NaN.
  double error();

  // Returns the timing of each candidate, the same on all ranks; empty if the ranks agreed to stop.
  std::vector<Timing> time(const InterleavedTiming& timing);
  // Makes all ranks agree on whether to stop: they stop if one of them was interrupted.
  void agree();
  // Returns whether all ranks have agreed to stop.
  bool stops() const { return stops_; }

  bool first() const { return transport_.rank() == 0; }
  const allreduce::simd::Loops& loops() const { return loops_; }
  // Returns the choice for a bucket that has been reduced; its algorithm is null if a device's
  // library chooses.
  allreduce::Candidate choice(std::size_t bucket) const;
  bool on_device() const { return exchange_ != nullptr; }

 private:
  void reduce_all(float factor);
  void reduce_on_device(float factor);
  // Copy the buckets between the host and the device.
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
  Buffer device_room_, host_buffer_;  // the buckets on the device, and their copy on the host
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

// Reads and writes a buffer of this rank in place: the minimum memory traffic of a reduction.
class Update {
 public:
  Update(const allreduce::simd::Loops& loops, std::size_t elements)
      : loops_(loops), values_(elements, 1.0F) {}
  void operator()() const;

 private:
  const allreduce::simd::Loops& loops_;
  mutable std::vector<float> values_;
};

// Returns how many reductions of so many bytes to time together, so that the clock resolves their
// time.
int repetitions(std::size_t bytes);

}  // namespace cnn::bench
