#include "allreduce/multiplexed_transport.h"

#include <algorithm>

namespace cnn::allreduce {

std::size_t MultiplexedTransport::channels() const {
  return processes_.channels() /
         (static_cast<std::size_t>(each_) * static_cast<std::size_t>(each_));
}

std::size_t MultiplexedTransport::between(std::size_t channel, int from, int to) const {
  const auto each = static_cast<std::size_t>(each_);
  return (channel * each + static_cast<std::size_t>(from % each_)) * each +
         static_cast<std::size_t>(to % each_);
}

Bytes MultiplexedTransport::allocate_shared(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return processes_.allocate_shared(bytes);
}

void MultiplexedTransport::send(int to, std::size_t channel, std::span<const Bytes> pieces) {
  processes_.send(process_of(to), between(channel, local_rank_, to), pieces);
}

bool MultiplexedTransport::sent(int to, std::size_t channel) {
  return processes_.sent(process_of(to), between(channel, local_rank_, to));
}

void MultiplexedTransport::receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
                                   std::span<const Bytes> to) {
  processes_.receive(process_of(from), between(channel, from, local_rank_), at_sender, to);
}

bool MultiplexedTransport::received(int from, std::size_t channel) {
  return processes_.received(process_of(from), between(channel, from, local_rank_));
}

// The processes count the barriers of a channel, so both ranks of a pair must take the same one.
std::size_t MultiplexedTransport::barrier_channel(std::size_t channel, int other) const {
  return between(channel, std::min(rank(), other), std::max(rank(), other));
}

void MultiplexedTransport::arrive(std::span<const int> group, std::size_t channel) {
  for (const int other : group) {
    const int process = process_of(other);
    if (other != rank()) {
      processes_.arrive({&process, 1}, barrier_channel(channel, other));
    }
  }
}

bool MultiplexedTransport::arrived(std::span<const int> group, std::size_t channel) {
  return std::ranges::all_of(group, [&](int other) {
    const int process = process_of(other);
    return other == rank() || processes_.arrived({&process, 1}, barrier_channel(channel, other));
  });
}

void MultiplexedTransport::idle(int waits_for) {
  const std::lock_guard lock(mutex_);
  processes_.idle(waits_for == any_rank ? any_rank : process_of(waits_for));
}

void MultiplexedTransport::busy() {
  const std::lock_guard lock(mutex_);
  processes_.busy();
}

}  // namespace cnn::allreduce
