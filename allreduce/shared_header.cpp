#include "allreduce/shared_header.h"

#include <new>

#include "runtime/divide_up.h"

namespace cnn::allreduce {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20U;
// The gap between two segments. All segments have the same size, and without it equal offsets would
// share their low address bits, so that sums over several segments would thrash one set of the
// cache (8 times slower at 1 MB).
constexpr std::size_t segment_gap = std::size_t{37} * 4096 + std::size_t{17} * 64;

std::size_t whole_pages(std::size_t bytes) { return round_up(bytes, huge_page); }

constexpr std::size_t line = 64;

std::size_t whole_lines(std::size_t bytes) { return round_up(bytes, line); }

// Returns the bytes between two words of a kind.
std::size_t stride_of(const SharedParameters& parameters) {
  constexpr std::size_t few_ranks = 16;
  return parameters.ranks <= few_ranks ? line : sizeof(Word);
}

// The sizes of the flags of all messages to one rank.
struct Inbox {
  std::size_t words, bytes;

  explicit Inbox(const SharedParameters& parameters)
      : words(divide_up(parameters.channels, 64)),
        bytes(whole_lines(parameters.ranks * words * stride_of(parameters))) {}
};

// Returns the bytes of the arrival counters of one rank.
std::size_t arrivals_bytes(const SharedParameters& parameters) {
  return whole_lines(parameters.channels * stride_of(parameters));
}

}  // namespace

std::size_t SharedHeader::header_bytes(const SharedParameters& parameters) {
  return whole_pages(sizeof(SharedParameters) +
                     parameters.ranks * (sizeof(RankStatus) + sizeof(Doorbell)) +
                     parameters.ranks * (arrivals_bytes(parameters) + Inbox(parameters).bytes));
}

std::size_t SharedHeader::total_bytes(const SharedParameters& parameters) {
  return header_bytes(parameters) +
         parameters.ranks * (whole_pages(parameters.segment_bytes) + segment_gap);
}

void SharedHeader::construct(const SharedParameters& parameters) {
  SharedParameters& mine = *new (memory_) SharedParameters(parameters);
  mine.segment_bytes = whole_pages(parameters.segment_bytes);
  for (std::size_t rank = 0; rank < parameters.ranks; ++rank) {
    new (&status(rank)) RankStatus;
    new (&doorbell(rank)) Doorbell;
  }
  for (std::size_t channel = 0; channel < parameters.channels; ++channel) {
    for (std::size_t rank = 0; rank < parameters.ranks; ++rank) {
      new (&arrivals(channel, rank)) Word(0);
      for (std::size_t to = 0; channel % 64 == 0 && to < parameters.ranks; ++to) {
        new (&pending(channel, rank, to)) Word(0);
      }
    }
  }
}

RankStatus& SharedHeader::status(std::size_t rank) const {
  return reinterpret_cast<RankStatus*>(memory_ + sizeof(SharedParameters))[rank];
}

Doorbell& SharedHeader::doorbell(std::size_t rank) const {
  return reinterpret_cast<Doorbell*>(memory_ + sizeof(SharedParameters) +
                                     parameters().ranks * sizeof(RankStatus))[rank];
}

std::byte* SharedHeader::counters() const {
  return reinterpret_cast<std::byte*>(&doorbell(parameters().ranks));
}

Word& SharedHeader::arrivals(std::size_t channel, std::size_t rank) const {
  const SharedParameters& shared_parameters = parameters();
  return *reinterpret_cast<Word*>(counters() + rank * arrivals_bytes(shared_parameters) +
                                  channel * stride_of(shared_parameters));
}

Word& SharedHeader::pending(std::size_t channel, std::size_t from, std::size_t to) const {
  const SharedParameters& shared_parameters = parameters();
  const Inbox inbox(shared_parameters);
  std::byte* const place =
      counters() + shared_parameters.ranks * arrivals_bytes(shared_parameters) + to * inbox.bytes +
      (from * inbox.words + channel / 64) * stride_of(shared_parameters);
  return *reinterpret_cast<Word*>(place);
}

std::byte* SharedHeader::segment(std::size_t rank) const {
  return memory_ + header_bytes(parameters()) + rank * (parameters().segment_bytes + segment_gap);
}

}  // namespace cnn::allreduce
