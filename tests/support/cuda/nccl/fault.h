#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace cnn::tests::emulated {

// The fault that the environment variable CNN_EMULATED_NCCL_FAULT asks for, as KIND:RANK:REDUCTION
// or KIND:RANK:REDUCTION:MILLISECONDS for delay and late. Reductions count from 0 on each rank: by
// their execution for kill, delay and error, by their launch for refuse and late, where those of a
// capture count once.
struct InjectedFault {
  enum class Kind : std::uint8_t {
    kill,    // the process of the rank is killed when it begins the reduction
    delay,   // the rank begins the reduction later
    error,   // the rank loses its connections: a system error there, a remote error elsewhere
    refuse,  // the launch of the reduction fails on the rank
    late,    // NCCL's own thread launches the reduction later
  };
  Kind kind{};
  int rank = 0;
  std::uint64_t reduction = 0;
  std::chrono::milliseconds delay{};

  bool strikes(Kind asked, int at_rank, std::uint64_t at_reduction) const {
    return kind == asked && rank == at_rank && reduction == at_reduction;
  }
};

// Throws Error if the variable cannot be read.
std::optional<InjectedFault> fault_of_environment();

}  // namespace cnn::tests::emulated
