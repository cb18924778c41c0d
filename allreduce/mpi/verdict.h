#pragma once

#include <chrono>
#include <deque>
#include <mpi.h>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/verdict_relay.h"

namespace cnn::allreduce {

inline constexpr int verdict_tag = 2;  // of their messages

// Why a run ends, as one rank has found out.
struct Verdict {
  int origin = -1;   // the rank that gives up
  int culprit = -1;  // because of this one: itself, or one that it has lost
  std::string why;

  std::string text() const;
  static Verdict read(const std::string& text);
};

// Tells the other ranks why this one gives up, and hears and passes on why others do, by messages
// among neighbours as VerdictRelay says. Open MPI ends a process whose message goes to a rank that
// has ended, so that nothing is sent to who has told this rank and may have gone since. Used by one
// thread at a time, which may call MPI.
class Verdicts {
 public:
  // rank: this one, of `ranks`. The communicator must outlive it.
  Verdicts(MPI_Comm comm, int rank, int ranks) : comm_(comm), relay_(rank, ranks) {}

  // Takes all verdicts that have come and passes them on. Returns that of rank 0 if it is among
  // them, else the first.
  std::optional<Verdict> take();
  // Tells one of this rank, the culprit too, which may go on again.
  void tell(const Verdict& own);
  // Returns when the neighbours have what they were told, or when the time is over.
  void wait_until_sent(std::chrono::milliseconds most);

 private:
  std::optional<Verdict> take_one();
  void pass_on(const Verdict& verdict);

  MPI_Comm comm_;
  VerdictRelay relay_;
  std::deque<std::string> texts_;   // as long as MPI may read them
  std::vector<MPI_Request> sends_;  // that are waited for
};

}  // namespace cnn::allreduce
