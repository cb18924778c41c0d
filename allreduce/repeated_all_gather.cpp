#include "allreduce/repeated_all_gather.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cnn::allreduce {
namespace {

constexpr std::size_t small_channel = 0;

// Polls done(), which depends on that rank.
template <class Done>
void wait_for(Transport& transport, int rank, const Done& done) {
  while (!done()) {
    transport.idle(rank);
  }
  transport.busy();
}

}  // namespace

std::vector<GatherRound> gather_rounds(int rank, int ranks) {
  std::vector<GatherRound> rounds;
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int from = (rank + distance) % ranks;
    rounds.push_back({.to = (rank - distance + ranks) % ranks,
                      .from = from,
                      .sends = rank,
                      .receives = from,
                      .count = std::min(distance, ranks - distance)});
  }
  return rounds;
}

RepeatedAllGather::RepeatedAllGather(Transport& transport, std::size_t bytes)
    : transport_(transport),
      bytes_(bytes),
      buffer_(transport.allocate_shared(bytes * static_cast<std::size_t>(transport.ranks()))) {
  for (const GatherRound& round : gather_rounds(transport.rank(), transport.ranks())) {
    rounds_.push_back({round.to, round.from, extents(round.sends, round.count),
                       extents(round.receives, round.count)});
  }
}

// Returns two extents where the parts wrap around to that of rank 0.
std::vector<Bytes> RepeatedAllGather::extents(int first, int count) const {
  const int behind = std::min(count, transport_.ranks() - first);
  const auto bytes = [this](int parts) { return bytes_ * static_cast<std::size_t>(parts); };
  std::vector<Bytes> result{buffer_.subspan(bytes(first), bytes(behind))};
  if (behind < count) {
    result.push_back(buffer_.first(bytes(count - behind)));
  }
  return result;
}

void RepeatedAllGather::run() {
  for (const Round& round : rounds_) {
    transport_.send(round.to, small_channel, round.sends);
    transport_.receive(round.from, small_channel, round.receives, round.receives);
    wait_for(transport_, round.from,
             [&] { return transport_.received(round.from, small_channel); });
  }
  for (const Round& round : rounds_) {
    wait_for(transport_, round.to, [&] { return transport_.sent(round.to, small_channel); });
  }
}

Broadcast::Broadcast(Transport& transport, std::size_t most)
    : transport_(transport), buffer_(transport.allocate_shared(most)) {}

void Broadcast::run(Bytes values) {
  while (!values.empty()) {
    const Bytes part = values.first(std::min(values.size(), buffer_.size()));
    if (transport_.rank() == 0) {
      std::memcpy(buffer_.data(), part.data(), part.size());
    }
    forward(part.size());
    if (transport_.rank() != 0) {
      std::memcpy(part.data(), buffer_.data(), part.size());
    }
    values = values.subspan(part.size());
  }
}

// A binomial tree: the parent of a rank clears its lowest bit, its children set one lower bit.
void Broadcast::forward(std::size_t bytes) {
  const auto self = static_cast<unsigned>(transport_.rank());
  const auto ranks = static_cast<unsigned>(transport_.ranks());
  const Bytes part = buffer_.first(bytes);
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
