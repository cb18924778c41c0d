#pragma once

#include <functional>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {

// Why several processes cannot be run here; empty if they can.
std::string why_no_ranks();

// Runs the program with these flags as that many processes of mpirun, on the CPU. err ends with a
// line "rank N left with CODE" of each.
Finished run_ranks(int ranks, const std::vector<std::string>& flags);

// The same of another program beside it.
Finished run_ranks_of(const std::string& program, int ranks, const std::vector<std::string>& flags);

// The same, calling `when` over and over; after that is true calls `then` once.
Finished run_ranks(int ranks, const std::vector<std::string>& flags,
                   const std::function<bool(const Finished&)>& when,
                   const std::function<void()>& then);

// The process of that rank of the run that this test has started and that runs; 0: none.
pid_t process_of_rank(int rank);
// Those of all ranks that run, of whatever program.
std::vector<pid_t> processes_of_ranks();

// How each rank of a run has left, by the last lines of its err.
std::map<int, int> codes_of(const Finished& run);

}  // namespace cnn::tests
