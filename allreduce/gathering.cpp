#include "allreduce/gathering.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cnn::allreduce {
namespace {

constexpr std::size_t small_channel = 0;
constexpr std::size_t broadcast_bytes = std::size_t{1} << 20U;

}  // namespace

Gathering::Gathering(Transport& transport, std::size_t bytes) : transport_(transport) {
  const auto ranks = static_cast<std::size_t>(transport.ranks());
  const Bytes room = transport.room(bytes * ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    parts_.push_back(room.subspan(rank * bytes, bytes));
  }
}

void Gathering::run() {
  const int self = transport_.rank(), ranks = transport_.ranks();
  for (int step = 1; step < ranks; ++step) {
    const int from = (self - step + ranks) % ranks;
    transport_.send((self + step) % ranks, small_channel, part(self));
    transport_.receive(from, small_channel, part(from), part(from));
  }
  for (int step = 1; step < ranks; ++step) {
    const int from = (self - step + ranks) % ranks;
    while (!transport_.received(from, small_channel)) {
      transport_.idle(from);
    }
    transport_.busy();
  }
  for (int step = 1; step < ranks; ++step) {
    const int to = (self + step) % ranks;
    while (!transport_.sent(to, small_channel)) {
      transport_.idle(to);
    }
    transport_.busy();
  }
}

Broadcast::Broadcast(Transport& transport)
    : transport_(transport), room_(transport.room(broadcast_bytes)) {}

void Broadcast::run(Bytes values) {
  while (!values.empty()) {
    const Bytes part = values.first(std::min(values.size(), room_.size()));
    if (transport_.rank() == 0) {
      std::memcpy(room_.data(), part.data(), part.size());
    }
    pass_on(part.size());
    if (transport_.rank() != 0) {
      std::memcpy(part.data(), room_.data(), part.size());
    }
    values = values.subspan(part.size());
  }
}

// A binomial tree: a rank hears from the one that lacks its lowest bit, and tells those that have
// one lower bit more.
void Broadcast::pass_on(std::size_t bytes) {
  const auto self = static_cast<unsigned>(transport_.rank());
  const auto ranks = static_cast<unsigned>(transport_.ranks());
  const Bytes part = room_.first(bytes);
  const unsigned lowest = self == 0 ? std::bit_ceil(ranks) : self & (~self + 1);
  if (self != 0) {
    const auto from = static_cast<int>(self - lowest);
    transport_.receive(from, small_channel, {&part, 1}, {&part, 1});
    while (!transport_.received(from, small_channel)) {
      transport_.idle(from);
    }
    transport_.busy();
  }
  for (unsigned bit = lowest / 2; bit > 0; bit /= 2) {
    if (self + bit < ranks) {
      transport_.send(static_cast<int>(self + bit), small_channel, {&part, 1});
    }
  }
  for (unsigned bit = lowest / 2; bit > 0; bit /= 2) {
    while (self + bit < ranks && !transport_.sent(static_cast<int>(self + bit), small_channel)) {
      transport_.idle(static_cast<int>(self + bit));
    }
    transport_.busy();
  }
}

}  // namespace cnn::allreduce
