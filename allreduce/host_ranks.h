#pragma once

#include <string>

namespace cnn::allreduce {

// Lists what /proc tells of the ranks of this run on this host, while they cannot yet send
// messages.
struct HostRanks {
  std::string text;               // for a message: which ranks are missing, and which wait
  bool lower_rank_waits = false;  // one below this rank is in the same call
};

// call: the name of a thread that ranks have while they are in that call. Ranks are found by the
// environment that Open MPI gives them.
HostRanks look_at_host_ranks(const std::string& call);

}  // namespace cnn::allreduce
