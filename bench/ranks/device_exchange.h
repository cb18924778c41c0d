#pragma once

#include <memory>
#include <string>

#include "allreduce/nccl/library.h"
#include "allreduce/transport.h"
#include "bench/flags/config.h"
#include "bench/ranks/rank_context.h"
#include "runtime/communicator.h"

namespace cnn::bench {

// Returns whether NCCL should sum GPU gradients, if it is available. Throws Error if flags
// contradict one another.
bool wants_nccl(const CommFlags& flags);

// The function that opens NCCL.
using OpenNccl = allreduce::nccl::Library (*)();

struct ChosenExchange {
  RankContext context;   // includes the exchange
  std::string text;      // one line for the user
  bool by_host = false;  // false: by NCCL
  // The communicator of the kernels, for callers that reduce outside a step.
  std::shared_ptr<StreamCommunicator> communicator = nullptr;
};

// Returns the context with kernels that exchange for a device with its own memory: by NCCL on the
// device, or by `host` through staging buffers of the transport; both must outlive the result. Rank
// 0's findings decide for all; all ranks call it together. Throws Error if the flags require NCCL,
// or rank 0 has it, and this rank cannot use it.
ChosenExchange exchange_on_device(RankContext context, const CommFlags& flags,
                                  allreduce::Transport& transport, Communicator& host,
                                  OpenNccl open);

}  // namespace cnn::bench
