#pragma once

#include <string>

namespace cnn::allreduce {

// The state of the other ranks of this run on this host as /proc shows it, for the time in which
// they cannot yet send messages.
struct HostRanks {
  std::string text;               // for an error message: the missing ranks, then the waiting ones
  bool lower_rank_waits = false;  // A rank with a lower number is in the same call.
};

// Returns the state of the ranks. call: the name of the thread that a rank has while it is in that
// call; see CallDeadline. Finds ranks by the environment variables that Open MPI sets.
HostRanks inspect_host_ranks(const std::string& call);

}  // namespace cnn::allreduce
