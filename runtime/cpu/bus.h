#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

#include "runtime/cpu/device.h"

namespace cnn {

enum class Direction : std::uint8_t { out, in };  // seen from the device

// The link that the copies of a device share: one copy at a time in each direction, as fast as its
// direction is alone or beside the other (see LinkSpeed). Thread-safe; allocates nothing.
class Bus {
 public:
  explicit Bus(const LinkSpeed& speed);

  // Waits for its turn, copies, and returns when the link would have moved the last byte.
  void copy(Direction direction, std::byte* to, const std::byte* from, std::size_t bytes);

 private:
  using Clock = std::chrono::steady_clock;
  struct Way {
    double speed = 0;  // bytes per second while the other way is still; 0: no limit
    bool taken = false;
    double left = 0;  // bytes of the copy that has it
  };

  void start(Way& way, std::size_t bytes);
  void finish(Way& way);
  // Blocks until at most so many bytes are left; the wait for the last of them ends on time.
  void wait_for(Way& way, std::size_t left);
  void advance(Clock::time_point now);
  double share() const;

  const double shared_;  // of its speed that each way has while both are busy
  std::mutex mutex_;     // guards all below
  std::condition_variable changed_;
  std::array<Way, 2> ways_;  // by Direction
  Clock::time_point now_;    // what has moved is counted up to here
};

// How one stream copies: at once, or over a bus.
class Copier {
 public:
  Copier() = default;
  Copier(std::shared_ptr<Bus> bus, Direction direction, const CopyJitter& jitter)
      : bus_(std::move(bus)),
        direction_(direction),
        longest_jitter_(jitter.longest),
        random_(jitter.seed + static_cast<unsigned>(direction)) {}

  void copy(std::byte* to, const std::byte* from, std::size_t bytes);

 private:
  std::shared_ptr<Bus> bus_;  // null: at once
  Direction direction_{};
  std::chrono::microseconds longest_jitter_{};
  std::minstd_rand random_;
};

}  // namespace cnn
