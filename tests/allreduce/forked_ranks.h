#pragma once

#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "allreduce/shared_memory.h"

namespace cnn::tests {

// The end of a rank that ran as a process.
struct RankEnd {
  int status = 0;            // exit status; 128 + n after signal n
  int culprit = -1;          // the rank that it named as lost
  std::string error;         // the message of its exception
  bool was_stopped = false;  // the test had to kill it
};

// Runs a function as each of n ranks, which are processes with shared memory. Kills a rank that
// runs for more than a minute, or that is stopped when all others have ended. A rank's exit status
// is that of its error or the function's return value.
struct ForkedRun {
  std::vector<RankEnd> ranks;
  bool hung = false;          // a rank neither ended nor was stopped
  double naming_seconds = 0;  // from the first death to the last rank that named a culprit
};
ForkedRun as_processes(int ranks, const allreduce::SharedMemoryOptions& options,
                       const std::function<int(allreduce::Transport&)>& work);

}  // namespace cnn::tests
