#include "allreduce/multiplexed_transport.h"

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

bool MultiplexedTransport::arrived(std::span<const int> /*group*/, std::size_t /*channel*/) {
  throw Error("ranks that do not share memory have no barriers; they exchange messages");
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
