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

std::size_t whole_lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }

// Bytes from one word of a kind to the next.
std::size_t stride_of(const Dimensions& of) {
  constexpr std::size_t few_ranks = 16;
  return of.ranks <= few_ranks ? line : sizeof(Word);
}

// Bits of the messages to one rank.
struct Inbox {
  std::size_t words, bytes;

  explicit Inbox(const Dimensions& of)
      : words((of.channels + 63) / 64), bytes(whole_lines(of.ranks * words * stride_of(of))) {}
};

// The counters of one rank.
std::size_t arrivals_bytes(const Dimensions& of) {
  return whole_lines(of.channels * stride_of(of));
}

}  // namespace

std::size_t Board::front(const Dimensions& of) {
  return whole_pages(sizeof(Dimensions) + of.ranks * (sizeof(Presence) + sizeof(Doorbell)) +
                     of.ranks * (arrivals_bytes(of) + Inbox(of).bytes));
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
      new (&arrivals(channel, rank)) Word(0);
      for (std::size_t to = 0; channel % 64 == 0 && to < of.ranks; ++to) {
        new (&under_way(channel, rank, to)) Word(0);
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

Word& Board::arrivals(std::size_t channel, std::size_t rank) const {
  const Dimensions& of = dimensions();
  return *reinterpret_cast<Word*>(counters() + rank * arrivals_bytes(of) + channel * stride_of(of));
}

Word& Board::under_way(std::size_t channel, std::size_t from, std::size_t to) const {
  const Dimensions& of = dimensions();
  const Inbox inbox(of);
  std::byte* const place = counters() + of.ranks * arrivals_bytes(of) + to * inbox.bytes +
                           (from * inbox.words + channel / 64) * stride_of(of);
  return *reinterpret_cast<Word*>(place);
}

std::byte* Board::room(std::size_t rank) const {
  return memory_ + front(dimensions()) + rank * (dimensions().room + apart);
}

}  // namespace cnn::allreduce
