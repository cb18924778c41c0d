#pragma once

#include <chrono>
#include <list>
#include <mpi.h>
#include <optional>
#include <set>
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

// Floods the first verdict that this rank reaches or hears: it goes to the ranks that it knows,
// each of which passes it on before it ends. So a few messages of each rank reach all, and whoever
// could see this rank end has heard why before. Used by one thread at a time, which may call MPI.
class VerdictFlood {
 public:
  // The communicator must outlive it.
  explicit VerdictFlood(MPI_Comm comm) : comm_(comm) {}

  void also_to(int rank) { to_.insert(rank); }  // never this rank itself

  // Whether there is a verdict, after a look at what has come; a new one is passed on.
  bool take();
  const std::optional<Verdict>& verdict() const { return verdict_; }
  void tell(Verdict own);
  void forget() { verdict_.reset(); }  // the next one counts
  // Returns when all has left but what goes to the culprit, which may not be there any more; or
  // when the time is over.
  void wait_until_sent(std::chrono::milliseconds most);

 private:
  void send(int except);

  MPI_Comm comm_;
  std::set<int> to_;
  std::optional<Verdict> verdict_;
  std::list<std::string> texts_;    // as long as MPI may read them
  std::vector<MPI_Request> sends_;  // that are waited for
};

}  // namespace cnn::allreduce
