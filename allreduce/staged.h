#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/device.h"

namespace cnn::allreduce {

// What a device lends to an exchange by way of its host.
struct StagingTools {
  // Host memory that the device copies from and to fastest, where the host's communicator sums; as
  // many floats on all ranks in the same order. Lives as long as the communicator.
  std::function<std::span<float>(std::size_t elements)> room;
  // Host memory that the device can read and write, 64 bytes at least, zero.
  std::function<Buffer()> flag;
  // Enqueues a wait of the device, which ends when a host has set the flag; takes it back if it is
  // staging_done.
  void (*wait_for)(Stream& stream, std::uint32_t* flag) = nullptr;
};

// Values of a flag; 0: not yet.
inline constexpr std::uint32_t staging_done = 1, staging_failed = 2;

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

 private:
  struct Bucket {
    std::size_t number = 0;
    std::span<float> staged;
    float factor = 1;
    Buffer flag;
  };

  static std::uint32_t* flag_of(const Bucket& bucket) {
    return reinterpret_cast<std::uint32_t*>(bucket.flag.data());
  }
  void arrived(Bucket& bucket);  // called in the stream's order
  void rethrow();
  void loop();
  void sum(Bucket& bucket);

  Communicator& host_;
  StagingTools tools_;
  std::vector<std::unique_ptr<Bucket>> buckets_;  // by number
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bucket*> waiting_;  // the oldest first
  std::exception_ptr error_;      // of the first sum that failed: no other is tried
  bool ends_ = false;
  std::thread thread_;  // last: it uses all others
};

}  // namespace cnn::allreduce
