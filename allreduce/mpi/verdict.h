#pragma once

#include <chrono>
#include <mpi.h>
#include <optional>
#include <string>
#include <vector>

namespace cnn::allreduce {

// Why a run ends, as one rank has found out.
struct Verdict {
  int origin = -1;   // the rank that gives up
  int culprit = -1;  // because of this one: itself, or one that it has lost
  std::string why;

  std::string text() const;
  static Verdict read(const std::string& text);
};

// Tells all other ranks why this one gives up, and hears why others do. Who hears it passes it on
// to nobody: Open MPI ends a process whose message goes to a rank that has ended meanwhile, as
// others then do. Used by one thread at a time, which may call MPI.
class Verdicts {
 public:
  // rank: this one, of `ranks`. The communicator must outlive it.
  Verdicts(MPI_Comm comm, int rank, int ranks) : comm_(comm), rank_(rank), ranks_(ranks) {}

  // A verdict that has come from another rank.
  std::optional<Verdict> take();
  // Returns when all others but the culprit, which may not be there any more, have it, or when the
  // time is over.
  void tell(const Verdict& own, std::chrono::milliseconds most);

 private:
  MPI_Comm comm_;
  int rank_, ranks_;
  std::string text_;                // as long as MPI may read it
  std::vector<MPI_Request> sends_;  // that are waited for
};

}  // namespace cnn::allreduce
