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

// The link that all copies of a device share: one copy at a time in each direction, at the
// direction's speed alone or while both are busy (see LinkSpeed). Thread-safe; allocates nothing.
class Bus {
 public:
  explicit Bus(const LinkSpeed& speed);

  // Waits until the direction is free, copies, and returns when the link would have moved the last
  // byte.
  void copy(Direction direction, std::byte* to, const std::byte* from, std::size_t bytes);

 private:
  using Clock = std::chrono::steady_clock;
  struct Channel {
    double speed = 0;  // bytes per second while the other direction is idle; 0: no limit
    bool taken = false;
    double left = 0;  // bytes that the current copy has still to move
  };

  void start(Channel& channel, std::size_t bytes);
  void finish(Channel& channel);
  // Blocks until at most `left` bytes remain. The wait for the last byte polls, so it ends on time.
  void wait_for(Channel& channel, std::size_t left);
  void advance(Clock::time_point now);
  double share() const;

  const double shared_;  // fraction of its speed that each direction has while both are busy
  std::mutex mutex_;     // guards all below
  std::condition_variable changed_;
  std::array<Channel, 2> channels_;  // by Direction
  Clock::time_point now_;            // the time up to which advance() has counted moved bytes
};

// The copy engine of one stream: copies at memory speed, or over a bus.
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
  std::shared_ptr<Bus> bus_;  // null: memory speed
  Direction direction_{};
  std::chrono::microseconds longest_jitter_{};
  std::minstd_rand random_;
};

}  // namespace cnn
