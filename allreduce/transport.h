#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "allreduce/progress.h"
#include "runtime/error.h"

namespace cnn::allreduce {

// Stands for the rank that is waited for where nothing tells which one it is, as in a sum that a
// library makes.
inline constexpr int any_rank = -1;

inline std::string lost_text(int rank) {
  return rank == any_rank ? "a rank is lost, and nothing tells which one: "
                          : "rank " + std::to_string(rank) + " is lost: ";
}

// A rank does not answer any more. The program ends with 75, so that who started it can tell.
class PeerLost : public Error {
 public:
  PeerLost(int rank, std::string_view what,
           std::source_location at = std::source_location::current())
      : Error(what, at), rank_(rank) {}
  int rank() const noexcept { return rank_; }  // whose fault it is, or any_rank
  int exit_code() const noexcept override { return 75; }

 private:
  int rank_;
};

using Bytes = std::span<std::byte>;

// How bytes move between ranks. Nothing here blocks: who waits asks again, and calls idle() in
// between. Between two ranks a channel has one message under way at a time. Used by one thread.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual std::size_t channels() const = 0;

  // Memory of this rank, zero, aligned to 64 bytes, which peers on its host see. All ranks ask for
  // the same sizes in the same order. It lives as long as what made the transport.
  virtual Bytes room(std::size_t bytes) = 0;
  // Where in the memory of that rank this address of a room of ours has its like; null: not in
  // sight. Must not be touched but between meetings.
  virtual std::byte* in_sight(int rank, std::byte* own) = 0;

  // Pieces one after another. They are read until sent() says so.
  virtual void send(int to, std::size_t channel, std::span<const Bytes> pieces) = 0;
  virtual bool sent(int to, std::size_t channel) = 0;
  // at_sender: where a room of ours has what the sender sends, as it is the same in all ranks.
  virtual void receive(int from, std::size_t channel, std::span<const Bytes> at_sender,
                       std::span<const Bytes> to) = 0;
  virtual bool received(int from, std::size_t channel) = 0;
  // A barrier of a group, which may be some of the ranks: says that this rank has come here; then,
  // whether all of the group have. On one channel all ranks of a host take part in equally many.
  virtual void come(std::span<const int> group, std::size_t channel) = 0;
  virtual bool have_come(std::span<const int> group, std::size_t channel) = 0;

  // Called by who has nothing to do but to wait for that rank, or for any_rank. Gives the processor
  // away after a while. Throws PeerLost if a rank is gone or the time is over: the one whom nobody
  // waits for.
  virtual void idle(int waits_for) = 0;
  virtual void busy() = 0;  // the wait is over
  // This rank will not come any more, so that others do not wait for it: by itself, or because of
  // that one, whom they blame then too. Any thread may call it.
  virtual void leave(std::optional<int> lost) = 0;

  // Where who computes writes how far this rank is: others see it, those of other hosts a little
  // later. Null: nobody does. It lives as long as the transport.
  virtual Progress* progress() { return nullptr; }
  virtual std::uint64_t progress_of(int /*rank*/) { return 0; }
  // Sets the data that others are told, which must outlive the transport.
  virtual void tell(const Progress& /*instead*/) {}
};

}  // namespace cnn::allreduce
