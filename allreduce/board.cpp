#include "allreduce/board.h"

#include <new>

namespace cnn::allreduce {
namespace {

constexpr std::size_t page = std::size_t{2} << 20U;  // a huge one
// Between rooms, which are as large as one another: the same place of two rooms must not have the
// same low bits, or sums over them miss the cache again and again (8 times slower at 1 MB).
constexpr std::size_t apart = std::size_t{37} * 4096 + std::size_t{17} * 64;

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

constexpr std::size_t line = 64;

// Bits of the messages to one rank. Few ranks have a line for each sender, so that two of them do
// not wait for one another's.
struct Inbox {
  std::size_t words, stride, bytes;

  explicit Inbox(const Dimensions& of)
      : words((of.channels + 63) / 64),
        stride(of.ranks <= 16 ? line : sizeof(std::uint64_t)),
        bytes((of.ranks * words * stride + line - 1) / line * line) {}
};

std::size_t arrivals_bytes(const Dimensions& of) {
  return of.channels * of.ranks * sizeof(Counter);
}

}  // namespace

std::size_t Board::front(const Dimensions& of) {
  return whole_pages(sizeof(Dimensions) + of.ranks * (sizeof(Presence) + sizeof(Doorbell)) +
                     arrivals_bytes(of) + of.ranks * Inbox(of).bytes);
}

std::size_t Board::bytes(const Dimensions& of) {
  return front(of) + of.ranks * (whole_pages(of.room) + apart);
}

void Board::build(const Dimensions& of) {
  Dimensions& mine = *new (memory_) Dimensions(of);
  mine.room = whole_pages(of.room);
  for (std::size_t rank = 0; rank < of.ranks; ++rank) {
    new (&presence(rank)) Presence;
    new (&doorbell(rank)) Doorbell;
  }
  for (std::size_t channel = 0; channel < of.channels; ++channel) {
    for (std::size_t rank = 0; rank < of.ranks; ++rank) {
      new (&arrivals(channel, rank)) Counter;
      for (std::size_t to = 0; channel % 64 == 0 && to < of.ranks; ++to) {
        new (&under_way(channel, rank, to)) std::atomic<std::uint64_t>(0);
      }
    }
  }
}

Presence& Board::presence(std::size_t rank) const {
  return reinterpret_cast<Presence*>(memory_ + sizeof(Dimensions))[rank];
}

Doorbell& Board::doorbell(std::size_t rank) const {
  return reinterpret_cast<Doorbell*>(memory_ + sizeof(Dimensions) +
                                     dimensions().ranks * sizeof(Presence))[rank];
}

std::byte* Board::counters() const {
  return reinterpret_cast<std::byte*>(&doorbell(dimensions().ranks));
}

Counter& Board::arrivals(std::size_t channel, std::size_t rank) const {
  return reinterpret_cast<Counter*>(counters())[channel * dimensions().ranks + rank];
}

std::atomic<std::uint64_t>& Board::under_way(std::size_t channel, std::size_t from,
                                             std::size_t to) const {
  const Dimensions& of = dimensions();
  const Inbox inbox(of);
  std::byte* const place = counters() + arrivals_bytes(of) + to * inbox.bytes +
                           (from * inbox.words + channel / 64) * inbox.stride;
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(place);
}

std::byte* Board::room(std::size_t rank) const {
  return memory_ + front(dimensions()) + rank * (dimensions().room + apart);
}

}  // namespace cnn::allreduce
