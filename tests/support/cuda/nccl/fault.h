#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace cnn::tests::emulated {

// The fault injected by the environment variable CNN_EMULATED_NCCL_FAULT. Its format is
// KIND:RANK:REDUCTION, with :MILLISECONDS appended for delay and late. Each rank counts reductions
// from 0. kill, delay and error count executions; refuse and late count launches, and a capture
// counts as one.
struct InjectedFault {
  enum class Kind : std::uint8_t {
    kill,    // kills the rank's process when it begins the reduction
    delay,   // the rank begins the reduction later
    error,   // cuts the rank's connections: a system error there, a remote error elsewhere
    refuse,  // the rank's launch of the reduction fails
    late,    // NCCL's own thread launches the reduction later
  };
  Kind kind{};
  int rank = 0;
  std::uint64_t reduction = 0;
  std::chrono::milliseconds delay{};

  bool strikes(Kind request, int at_rank, std::uint64_t at_reduction) const {
    return kind == request && rank == at_rank && reduction == at_reduction;
  }
};

// Throws Error if the variable cannot be read.
std::optional<InjectedFault> fault_of_environment();

}  // namespace cnn::tests::emulated
