#include "runtime/cpu/bus.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "runtime/seconds_since.h"

namespace cnn {
namespace {

// Copies move in pieces, so that a slow copy is slow throughout, not a fast copy and a pause.
constexpr std::size_t piece = std::size_t{1} << 18U;
// A sleep ends late by the kernel's timer slack of 50 us and the scheduling delay, so the wait for
// the end of a copy polls.
constexpr std::chrono::microseconds awake{100};

// Copies like memmove, and accepts zero bytes.
void copy_at_once(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::copy_n(from, bytes, to);
}

double shared_part(const LinkSpeed& speed) {
  const double sum = speed.out + speed.in;
  return speed.both > 0 && sum > 0 ? std::min(1.0, speed.both / sum) : 1;
}

}  // namespace

Bus::Bus(const LinkSpeed& speed) : shared_(shared_part(speed)), now_(Clock::now()) {
  channels_[static_cast<std::size_t>(Direction::out)].speed = speed.out;
  channels_[static_cast<std::size_t>(Direction::in)].speed = speed.in;
}

void Bus::copy(Direction direction, std::byte* to, const std::byte* from, std::size_t bytes) {
  Channel& channel = channels_.at(static_cast<std::size_t>(direction));
  if (channel.speed <= 0 || bytes == 0) {
    copy_at_once(to, from, bytes);
    return;
  }
  start(channel, bytes);
  for (std::size_t at = 0; at < bytes; at += piece) {
    wait_for(channel, bytes - at);
    std::memcpy(to + at, from + at, std::min(piece, bytes - at));
  }
  wait_for(channel, 0);
  finish(channel);
}

void Bus::start(Channel& channel, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !channel.taken; });
  advance(Clock::now());
  channel.taken = true;
  channel.left = static_cast<double>(bytes);
  changed_.notify_all();  // the other direction is slower now
}

void Bus::finish(Channel& channel) {
  const std::lock_guard lock(mutex_);
  channel.taken = false;
  changed_.notify_all();
}

void Bus::wait_for(Channel& channel, std::size_t left) {
  std::unique_lock lock(mutex_);
  for (;;) {
    advance(Clock::now());
    const double missing = channel.left - static_cast<double>(left);
    if (missing <= 0) {
      return;
    }
    const auto due = now_ + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(missing / (channel.speed * share())));
    if (left > 0) {
      changed_.wait_until(lock, due);
    } else if (due - now_ > awake) {
      changed_.wait_until(lock, due - awake);
    } else {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }
}

// When a copy completes, the other direction gets the full link from that moment on, however late
// the copying thread notices.
void Bus::advance(Clock::time_point now) {
  double seconds = in_seconds(now - now_);
  now_ = now;
  while (seconds > 0) {
    const double part = share();
    double pass = seconds;
    for (const Channel& channel : channels_) {
      pass = channel.left > 0 ? std::min(pass, channel.left / (channel.speed * part)) : pass;
    }
    for (Channel& channel : channels_) {
      const bool through = channel.left > 0 && channel.left / (channel.speed * part) <= pass;
      channel.left = through || channel.left <= 0 ? 0 : channel.left - pass * channel.speed * part;
    }
    seconds -= pass;
  }
}

double Bus::share() const { return channels_[0].left > 0 && channels_[1].left > 0 ? shared_ : 1; }

void Copier::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (longest_jitter_.count() > 0) {
    const auto longest = static_cast<std::uint64_t>(longest_jitter_.count());
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % (longest + 1)));
  }
  if (bus_ == nullptr) {
    copy_at_once(to, from, bytes);
  } else {
    bus_->copy(direction_, to, from, bytes);
  }
}

}  // namespace cnn
