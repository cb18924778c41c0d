#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <stop_token>
#include <string_view>
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
  int threads = 1;         // reader threads
  int buffers = 2;  // batches in memory: one belongs to the caller, the others are prefetched
  // Shuffled: a new order in every epoch; ignored if the data set may not be shuffled.
  Order order = Order::shuffled;
  std::uint64_t seed = 0;
  std::int64_t first_step = 0;  // global step of the first batch
  // Feeders of several ranks share a global batch of batch * shards examples; this feeder reads
  // part number `shard`.
  int shard = 0, shards = 1;
  Transform transform;                           // empty: images stay unchanged
  std::string_view batch_flag = "--batch_size";  // sets `batch`: for messages
  Device* device = nullptr;  // allocates the batches with allocate_host(); nullptr: plain memory
};

// One batch, valid until the following call of Feeder::next.
struct Batch {
  std::span<std::byte> images;  // batch x ImageFormat, aligned to 64 bytes
  std::span<std::int32_t> labels;
  std::int64_t step = 0;      // global step of the batch
  double seconds_waited = 0;  // time for which next() blocked
};

// Maps a position of the endless sequence that training reads to the index of an example. Position
// 0 is the first example of global step 0. Every epoch has its own order.
class Sequence {
 public:
  // likes_runs: see Dataset::likes_runs(). Such a set is shuffled in windows if it is larger than a
  // window.
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

  // Returns the next batch; blocks until it is complete. The feeder may overwrite the previous
  // batch from then on. If an example of the batch could not be read, this and every later call
  // throws that error. One thread at a time may call it.
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
  // Prefetches the next windows of a large set into the page cache, run by run.
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

  std::mutex mutex_;                  // guards all members below, and filled and error of the slots
  std::condition_variable_any room_;  // signalled when a batch is returned
  std::condition_variable_any taken_;  // signalled when a thread takes an example
  std::condition_variable filled_;     // signalled when a batch is complete
  std::int64_t next_example_ = 0;      // first example that no thread has taken
  std::int64_t delivered_ = 0;         // batches that next() returned
  std::int64_t given_back_ = 0;        // batches that threads may overwrite
  std::vector<std::jthread>
      threads_;  // declared last, so that they end before what they use is destroyed
};

}  // namespace cnn::data
