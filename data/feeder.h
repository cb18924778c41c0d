#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "data/permutation.h"
#include "data/windowed_permutation.h"
#include "runtime/device.h"

namespace cnn::data {

enum class Order : std::uint8_t { shuffled, sequential };

struct FeederOptions {
  std::int64_t batch = 1;  // examples per step of this feeder
  int threads = 1;         // how many read
  int buffers = 2;         // batches in memory; one is the caller's, the others are filled ahead
  Order order =
      Order::shuffled;  // anew in every epoch; ignored if the data set may not be shuffled
  std::uint64_t seed = 0;
  std::int64_t first_step = 0;  // global step of the first batch
  // Feeders of several ranks share a global batch of batch * shards examples; this one takes the
  // part number `shard`.
  int shard = 0, shards = 1;
  Transform transform;       // empty: images as the data set has them
  Device* device = nullptr;  // whose host memory the batches lie in; nullptr: plain memory
};

// One batch, valid until the following call of Feeder::next.
struct Batch {
  std::span<std::byte> images;  // batch x ImageFormat, aligned to 64 bytes
  std::span<std::int32_t> labels;
  std::int64_t step = 0;      // the global step it is for
  double seconds_waited = 0;  // how long next() blocked
};

// Maps a position of the endless sequence that training reads to the index of an example. Position
// 0 is the first example of global step 0. Every epoch has its own order.
class Sequence {
 public:
  // likes_runs: as Dataset::likes_runs(). Such a set is shuffled in windows if it is larger than
  // one.
  Sequence(std::int64_t size, Order order, std::uint64_t seed, bool likes_runs = false)
      : size_(size),
        order_(order),
        seed_(seed),
        windowed_(likes_runs && order == Order::shuffled && size > WindowedPermutation::window) {}
  std::int64_t operator[](std::int64_t position) const;

  // A run of examples that are adjacent on disk and needed about one window after `position`.
  struct Run {
    std::int64_t first = 0, count = 0;
  };
  bool has_windows() const { return windowed_; }
  Run run_at(std::int64_t position) const;  // with windows only; position: a multiple of runs

 private:
  std::int64_t size_;
  Order order_;
  std::uint64_t seed_;
  bool windowed_;
};

// A data loader that prefetches: its threads fill batches ahead of the steps that need them. The
// content of a batch depends on the options and its step only, not on threads or time. Allocates
// memory in the constructor only.
class Feeder {
 public:
  // `dataset` must outlive the feeder. Throws Error for invalid options.
  Feeder(const Dataset& dataset, FeederOptions options);
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  // Returns the next batch; blocks until it is complete. The batch before it may be overwritten
  // from then on. If an example of it could not be read, this and every later call throws that
  // error. One thread at a time.
  const Batch& next();
  // Returns whether next() would return a batch at once.
  bool has_next();

 private:
  struct Slot {
    Batch batch;
    std::int64_t filled = 0;   // examples
    std::exception_ptr error;  // of the first example that failed
    std::int64_t failed_example = 0;
  };
  struct Piece {
    std::int64_t begin = 0, end = 0;  // examples since the first batch; all of one batch
  };

  void allocate();
  void work(const std::stop_token& stop);
  // Lets the system read the next windows of a large set into the page cache, run by run.
  void read_ahead(const std::stop_token& stop);
  bool take(const std::stop_token& stop, Piece& piece);  // false: stop
  void fill(const Piece& piece, std::span<std::byte> scratch);
  void read(std::int64_t example, std::span<std::byte> scratch);
  Slot& slot_of(std::int64_t batch) {
    return slots_[static_cast<std::size_t>(batch) % slots_.size()];
  }

  const Dataset& dataset_;
  const FeederOptions options_;
  const ImageFormat format_;
  const Sequence sequence_;
  std::vector<Buffer> memory_;
  std::vector<Slot> slots_;

  std::mutex mutex_;                   // guards what follows, and filled and error of the slots
  std::condition_variable_any room_;   // a batch was given back
  std::condition_variable_any taken_;  // an example was taken by a thread
  std::condition_variable filled_;     // a batch is complete
  std::int64_t next_example_ = 0;      // not yet taken by a thread
  std::int64_t delivered_ = 0;         // batches that next() returned
  std::int64_t given_back_ = 0;        // batches that may be overwritten
  std::vector<std::jthread>
      threads_;  // declared last, so that they end before what they use is destroyed
};

}  // namespace cnn::data
