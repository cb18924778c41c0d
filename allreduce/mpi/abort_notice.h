#pragma once

#include <chrono>
#include <deque>
#include <mpi.h>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/abort_gossip.h"

namespace cnn::allreduce {

inline constexpr int abort_tag = 2;  // the MPI tag of abort notices

// The message by which a rank tells the others why it aborts the run.
struct AbortNotice {
  int origin = -1;   // the rank that aborts
  int culprit = -1;  // the rank because of which: the origin itself, or one that it has lost
  std::string why;

  std::string text() const;  // "origin culprit why"
  static AbortNotice read(const std::string& text);
};

// Sends, receives and forwards abort notices over MPI along the graph of AbortGossip. Open MPI
// kills a process whose message goes to a rank that has ended, so nothing is sent to a rank that
// has sent its notice and may have ended since. The callers hold the lock of MPI.
class AbortNotices {
 public:
  // The communicator must outlive this object.
  AbortNotices(MPI_Comm comm, int rank, int ranks) : comm_(comm), gossip_(rank, ranks) {}

  // Receives all notices that have come and forwards them. Returns that of rank 0 if it is among
  // them, otherwise the first; nothing if none has come.
  std::optional<AbortNotice> receive();
  // Sends the notice of this rank, to the culprit too, which may be alive.
  void send(const AbortNotice& own);
  // Blocks until all notices are sent, or for `timeout`.
  void wait_until_sent(std::chrono::milliseconds timeout);

 private:
  std::optional<AbortNotice> receive_one();
  void forward(const AbortNotice& notice);

  MPI_Comm comm_;
  AbortGossip gossip_;
  std::deque<std::string> texts_;   // lives until MPI has sent them
  std::vector<MPI_Request> sends_;  // those that wait_until_sent() waits for
};

}  // namespace cnn::allreduce
