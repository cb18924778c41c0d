#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "allreduce/progress.h"
#include "runtime/error.h"

namespace cnn::allreduce {

// Stands for the awaited rank if it is unknown, as in a library's collective.
inline constexpr int any_rank = -1;

// Returns "rank 3 is lost: ", the beginning of the message of a PeerLost.
inline std::string lost_text(int rank) {
  return rank == any_rank ? "a rank is lost, and nothing tells which one: "
                          : "rank " + std::to_string(rank) + " is lost: ";
}

// The error that a rank has failed or does not answer any more. The program then ends with exit
// code 75 (EX_TEMPFAIL), so that a launcher can tell it from a failure of its own.
class PeerLost : public Error {
 public:
  // How the rank that throws has learned of the failure: it has observed it, or another rank, which
  // is reported too, has told it.
  enum class Source : std::uint8_t { observed, told };

  PeerLost(int rank, std::string_view what, Source source = Source::observed,
           std::source_location at = std::source_location::current())
      : Error(what, at), rank_(rank), source_(source) {}
  int rank() const noexcept { return rank_; }  // the failed rank, or any_rank
  Source source() const noexcept { return source_; }
  int exit_code() const noexcept override { return 75; }

 private:
  int rank_;
  Source source_;
};

using Bytes = std::span<std::byte>;

// Non-blocking point-to-point messages, group barriers and a symmetric heap: how bytes move between
// ranks. No function blocks: callers poll sent(), received() and arrived(), and call idle() between
// two rounds without progress. A channel carries at most one message from one rank to another at a
// time. One thread uses a transport.
//
// The heap is symmetric as in OpenSHMEM: every rank has a shared segment, in which the same
// sequence of allocations gives the same offsets, so that an address of one rank names a place in
// all.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual std::size_t channels() const = 0;

  // Allocates zeroed memory, aligned to 64 bytes, in this rank's shared segment, which the peers on
  // its host can address. All ranks call it with the same sizes in the same order. The memory lives
  // as long as the object that made the transport. Throws Error if the segment is too small.
  virtual Bytes allocate_shared(std::size_t bytes) = 0;
  // Returns the address, in the segment of `rank`, that corresponds to `own` in this rank's; null
  // if that memory cannot be addressed from here. Accesses must be ordered by barriers.
  virtual std::byte* peer_address(int rank, std::byte* own) = 0;

  // Posts one message made of the pieces in their order. They must not change until sent().
  virtual void send(int to, std::size_t channel, std::span<const Bytes> pieces) = 0;
  // Returns whether the last posted send to that rank on that channel is complete.
  virtual bool sent(int to, std::size_t channel) = 0;
  // Posts a receive of the next message. at_sender: where this rank's segment has what the sender
  // sends; the offsets are the same in all segments, so that a copy can be made without the sender.
  virtual void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
                       std::span<const Bytes> to) = 0;
  // Returns whether the last posted receive is complete.
  virtual bool received(int from, std::size_t channel) = 0;
  // A split-phase barrier of a group of ranks: arrive() announces this rank, arrived() returns
  // whether all of the group have. On one channel all ranks of a host pass equally many barriers.
  virtual void arrive(std::span<const int> group, std::size_t channel) = 0;
  virtual bool arrived(std::span<const int> group, std::size_t channel) = 0;

  // One round of a wait for that rank, or for any_rank: spins first, later gives the processor away
  // and checks the peers. Throws PeerLost if one has failed, or if the wait has timed out: then it
  // names the rank at the end of the chain of ranks that wait for one another.
  virtual void idle(int waits_for) = 0;
  // Ends the wait that idle() began.
  virtual void busy() = 0;
  // Announces that this rank will not take part any more, so that nobody waits for it: it has
  // finished, or it fails because of the rank `lost`, which the others then blame too. Any thread
  // may call it.
  virtual void leave(std::optional<int> lost) = 0;

  // Returns the word in which this rank publishes how far it is; peers see it, those of other hosts
  // a little later. Null if the transport has none. It lives as long as the transport.
  virtual Progress* progress() { return nullptr; }
  // Returns the word that `rank` has published; 0 if nothing is known.
  virtual std::uint64_t progress_of(int /*rank*/) { return 0; }
  // Publishes the word `source` in place of progress(). It must outlive the transport.
  virtual void publish(const Progress& /*source*/) {}
};

}  // namespace cnn::allreduce
