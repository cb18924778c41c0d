#pragma once

#include <memory>
#include <string>

#include "allreduce/nccl/library.h"
#include "allreduce/transport.h"
#include "bench/flags/config.h"
#include "bench/ranks/rank_context.h"
#include "runtime/communicator.h"

namespace cnn::bench {

// Whether gradients of GPUs are to be summed by NCCL, if it is there. Throws Error where the flags
// contradict one another.
bool wants_nccl(const CommFlags& flags);

// How NCCL is opened.
using OpenNccl = allreduce::nccl::Library (*)();

struct DeviceWay {
  RankContext context;   // with the exchange
  std::string text;      // one line for the user
  bool by_host = false;  // else by NCCL
  // The communicator of the kernels, for callers that reduce without a step.
  std::shared_ptr<StreamCommunicator> communicator = nullptr;
};

// Returns the context with kernels that exchange, on a device that has memory of its own: by NCCL
// on the device, or on the host by `host`, in rooms of the transport, which both must outlive it.
// The findings of rank 0 decide for all; all ranks call it together. Throws Error where NCCL is
// asked for, or rank 0 has it, and it cannot be used here.
DeviceWay exchange_on_device(RankContext context, const CommFlags& flags,
                             allreduce::Transport& transport, Communicator& host, OpenNccl open);

}  // namespace cnn::bench
