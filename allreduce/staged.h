#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/device.h"

namespace cnn::allreduce {

// The functions that a device lends to an exchange by way of its host.
struct StagingTools {
  // Host memory that the device copies from and to fastest, where the host's communicator sums; as
  // many floats on all ranks in the same order. Lives as long as the communicator.
  std::function<std::span<float>(std::size_t elements)> room;
  // Host memory that the device can read and write, 64 bytes at least, zero: three words.
  std::function<Buffer()> flag;
  // Enqueues a wait of the device, which ends when a host has set the word `done`, which it takes
  // back, or the word `failed`, which stays. While it waits, the word `waits` is set.
  void (*wait_for)(Stream& stream, std::uint32_t* flag) = nullptr;
  // How long a device may wait for a bucket that was not handed to the host: then host work before
  // it on the stream has failed, and the bucket will never be.
  std::chrono::milliseconds longest_unanswered{5'000};
};

// The words of a flag; each is 0 or 1.
inline constexpr std::size_t staging_done = 0, staging_failed = 1, staging_waits = 2;

// Buckets travel to the host, are summed there by a thread of this object in the order in which
// they arrive, and travel back: the bits are those of the host's communicator. Work on the stream
// never blocks a thread of the device: the device itself waits, so a step may be recorded.
class StagedCommunicator final : public StreamCommunicator {
 public:
  // host: used by the own thread alone from the first step on, while a step runs. Must outlive it.
  StagedCommunicator(Communicator& host, StagingTools tools);
  ~StagedCommunicator() override;  // no step runs any more
  StagedCommunicator(const StagedCommunicator&) = delete;
  StagedCommunicator& operator=(const StagedCommunicator&) = delete;

  void prepare(std::size_t bucket, std::size_t elements) override;
  void all_reduce(Stream& stream, std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override;

  // For callers that wait for the device, over and over, and with false when the wait is over: ends
  // the device's wait for a bucket that will not come. Throws nothing: the stream does.
  void look(bool waiting);

 private:
  struct Bucket {
    std::size_t number = 0;
    std::span<float> staged;
    float factor = 1;
    Buffer flag;
    bool on_host = false;  // from its arrival until its flag is set
  };

  static std::uint32_t* flag_of(const Bucket& bucket) {
    return reinterpret_cast<std::uint32_t*>(bucket.flag.data());
  }
  static std::atomic_ref<std::uint32_t> word_of(const Bucket& bucket, std::size_t word) {
    return std::atomic_ref(flag_of(bucket)[word]);
  }
  void arrived(Bucket& bucket);  // called in the stream's order
  void rethrow();
  void loop();
  std::exception_ptr sum(Bucket& bucket);
  void fail(std::exception_ptr error);     // needs the lock
  const Bucket* first_unanswered() const;  // needs the lock; null: there is none

  Communicator& host_;
  StagingTools tools_;
  std::vector<std::unique_ptr<Bucket>> buckets_;  // by number
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bucket*> waiting_;  // the oldest first
  std::exception_ptr error_;      // the first failure: no other sum is tried, and no device waits
  std::optional<std::chrono::steady_clock::time_point> unanswered_since_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses all others
};

}  // namespace cnn::allreduce
