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

// The functions of a device that a StagedCommunicator needs.
struct StagingFunctions {
  // Returns a pinned staging buffer of so many floats in the shared segment of the host's
  // transport. All ranks call it with the same sizes in the same order. The buffer lives as long as
  // the communicator.
  std::function<std::span<float>(std::size_t elements)> allocate_staging;
  // Returns at least 64 bytes of zeros that host and device both read and write: three words.
  std::function<Buffer()> allocate_flag;
  // Enqueues a wait on the stream. It ends when the host has set the word `done`, which the device
  // clears again, or the word `failed`, which stays set. The word `waits` is set during the wait.
  void (*wait_for)(Stream& stream, std::uint32_t* flag) = nullptr;
  // The longest time a device waits for a bucket that its stream has not handed to the host. After
  // that the host work before it on the stream must have failed, so the bucket will never come.
  std::chrono::milliseconds handover_timeout{5'000};
};

// The indices of the words of a flag. Each word is 0 or 1.
inline constexpr std::size_t staging_done = 0, staging_failed = 1, staging_waits = 2;

// An all-reduce of device buffers that is staged through host memory. The stream copies a bucket to
// the host, a thread of this object sums buckets there in the order in which they arrive, and the
// stream copies the sum back. The bits are those of the host's communicator. No call blocks: the
// device itself waits on its stream, so that a step may be captured as a CUDA graph.
class StagedCommunicator final : public StreamCommunicator {
 public:
  // From the first step on only this object's thread may use `host` while a step runs. `host` must
  // outlive this object.
  StagedCommunicator(Communicator& host, StagingFunctions functions);
  ~StagedCommunicator() override;  // No step may be running.
  StagedCommunicator(const StagedCommunicator&) = delete;
  StagedCommunicator& operator=(const StagedCommunicator&) = delete;

  void prepare(std::size_t bucket, std::size_t elements) override;
  void all_reduce(Stream& stream, std::size_t bucket, std::span<const std::span<float>> pieces,
                  float factor) override;
  void release(std::size_t bucket) override;
  void reserve(std::size_t elements) override;

  // The poll callback of a wait for the device: call it with true in every round, with false when
  // the wait is over. Ends the device's wait for a bucket that will not come. Does not throw; the
  // stream reports the error.
  void poll(bool waiting);

 private:
  struct Bucket {
    std::size_t number = 0;
    std::span<float> memory;  // of at least as many floats as the bucket
    std::span<float> staged;  // the part of `memory` that the bucket uses
    float factor = 1;
    Buffer flag;
    bool on_host = false;  // between its arrival and the setting of its flag
  };

  static std::uint32_t* flag_of(const Bucket& bucket) {
    return reinterpret_cast<std::uint32_t*>(bucket.flag.data());
  }
  static std::atomic_ref<std::uint32_t> word_of(const Bucket& bucket, std::size_t word) {
    return std::atomic_ref(flag_of(bucket)[word]);
  }
  // Returns a released staging buffer of at least so many floats, else a new one.
  std::span<float> take_memory(std::size_t elements);
  void on_arrival(Bucket& bucket);  // The stream calls it in its order.
  void rethrow();
  void run();
  std::exception_ptr sum(Bucket& bucket);
  // The caller of these two holds the lock.
  void fail(std::exception_ptr error);
  // The device waits for it, but it never reached the host; or null.
  const Bucket* first_overdue() const;

  Communicator& host_;
  StagingFunctions functions_;
  std::vector<std::unique_ptr<Bucket>> buckets_;  // by number
  std::span<float> spare_;                        // the largest released staging buffer
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bucket*> queue_;  // buckets to sum, the oldest first
  std::exception_ptr error_;    // the first failure, after which nothing is summed or waited for
  std::optional<std::chrono::steady_clock::time_point> overdue_since_;
  bool stopping_ = false;
  std::thread thread_;  // declared last, as it uses all the others
};

}  // namespace cnn::allreduce
