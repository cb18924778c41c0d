#pragma once

#include <memory>

#include "runtime/communicator.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Adds kernels for AllReduce where the host cannot see device memory: they enqueue the exchange on
// a stream. Kernels share the communicator.
void add_stream_exchange(KernelTable& table, std::shared_ptr<StreamCommunicator> communicator);

}  // namespace cnn::layers
