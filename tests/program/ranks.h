#pragma once

#include <functional>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {

// Returns why this machine cannot run several processes, or "" if it can.
std::string why_no_ranks();

// Runs the program as `ranks` processes of mpirun on the CPU. `err` ends with a line "rank N left
// with CODE" for each rank. Rank 1 also gets the words of the environment variable
// CNN_TEST_FLAGS_OF_RANK_1.
Finished run_ranks(int ranks, const std::vector<std::string>& flags);

// Runs another program of the same folder in this way.
Finished run_ranks_of(const std::string& program, int ranks, const std::vector<std::string>& flags);

// Also polls `when`, and calls `then` once after it is true.
Finished run_ranks(int ranks, const std::vector<std::string>& flags,
                   const std::function<bool(const Finished&)>& when,
                   const std::function<void()>& then);

// Returns the running process of a rank that this test started, or 0 if there is none.
pid_t process_of_rank(int rank);
// Returns the running processes of all ranks, whatever program they run.
std::vector<pid_t> processes_of_ranks();

// Returns the exit code of each rank from the last lines of `err`.
std::map<int, int> codes_of(const Finished& run);

}  // namespace cnn::tests
