#include "allreduce/board.h"

#include <new>

namespace cnn::allreduce {
namespace {

constexpr std::size_t page = std::size_t{2} << 20U;  // a huge one
// Between rooms, which are as large as one another: the same place of two rooms must not have the
// same low bits, or sums over them miss the cache again and again (8 times slower at 1 MB).
constexpr std::size_t apart = std::size_t{37} * 4096 + std::size_t{17} * 64;

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

// Arrivals, then posted and taken.
std::size_t counters_of(const Dimensions& of) {
  return of.channels * of.ranks * (1 + 2 * of.ranks);
}

}  // namespace

std::size_t Board::front(const Dimensions& of) {
  return whole_pages(sizeof(Dimensions) + of.ranks * (sizeof(Presence) + sizeof(Doorbell)) +
                     counters_of(of) * sizeof(Counter));
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
  for (std::size_t i = 0; i < counters_of(of); ++i) {
    new (counters() + i) Counter;
  }
}

Presence& Board::presence(std::size_t rank) const {
  return reinterpret_cast<Presence*>(memory_ + sizeof(Dimensions))[rank];
}

Doorbell& Board::doorbell(std::size_t rank) const {
  return reinterpret_cast<Doorbell*>(memory_ + sizeof(Dimensions) +
                                     dimensions().ranks * sizeof(Presence))[rank];
}

Counter* Board::counters() const {
  return reinterpret_cast<Counter*>(&doorbell(dimensions().ranks));
}

Counter& Board::arrivals(std::size_t channel, std::size_t rank) const {
  return counters()[channel * dimensions().ranks + rank];
}

Counter& Board::posted(std::size_t channel, std::size_t from, std::size_t to) const {
  const std::size_t n = dimensions().ranks;
  return counters()[dimensions().channels * n + (channel * n + from) * n + to];
}

Counter& Board::taken(std::size_t channel, std::size_t from, std::size_t to) const {
  return posted(dimensions().channels + channel, from, to);
}

std::byte* Board::room(std::size_t rank) const {
  return memory_ + front(dimensions()) + rank * (dimensions().room + apart);
}

}  // namespace cnn::allreduce
