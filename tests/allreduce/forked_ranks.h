#pragma once

#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "allreduce/shared_memory.h"

namespace cnn::tests {

// How a rank that was a process has ended.
struct RankEnd {
  int status = 0;            // exit status; 128 + n after signal n
  int culprit = -1;          // whom it has named
  std::string error;         // what it has thrown
  bool was_stopped = false;  // it had to be killed
};

// Runs a function as each of n ranks, a process each, in memory that they share. A rank that is
// still there a minute after the start, or is stopped when all others have ended, is killed. The
// exit status of a rank is that of its error, or what the function returns.
struct ForkedRun {
  std::vector<RankEnd> ranks;
  bool hung = false;          // one was not stopped and did not end
  double naming_seconds = 0;  // from the first death to the last rank that named somebody
};
ForkedRun as_processes(int ranks, const allreduce::SharedMemoryOptions& options,
                       const std::function<int(allreduce::Transport&)>& work);

}  // namespace cnn::tests
