#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "allreduce/transport.h"

namespace cnn::allreduce {

// A few bytes that each rank tells all others, again and again, between reductions.
class Gathering {
 public:
  // bytes: that each rank gives. All ranks make theirs at the same place among their rooms. The
  // transport must outlive it.
  Gathering(Transport& transport, std::size_t bytes);

  Bytes mine() const { return of(transport_.rank()); }
  // Blocks until all ranks have called it: then of() has what each of them had in mine(). Allocates
  // nothing. Throws PeerLost.
  void run();
  Bytes of(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }

 private:
  std::span<const Bytes> part(int rank) const {
    return std::span(parts_).subspan(static_cast<std::size_t>(rank), 1);
  }

  Transport& transport_;
  std::vector<Bytes> parts_;  // of a room, by rank
};

// Large values that rank 0 has and all are to have.
class Broadcast {
 public:
  explicit Broadcast(Transport& transport);  // as a Gathering

  // values become those of rank 0; as many on all ranks, at the same time. Throws PeerLost.
  void run(Bytes values);

 private:
  void pass_on(std::size_t bytes);  // of the room: from the rank before to those after

  Transport& transport_;
  Bytes room_;
};

}  // namespace cnn::allreduce
