#pragma once

#include <memory>

#include "runtime/communicator.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Adds what exchanges gradients with other ranks where the host does not see the device's memory:
// sums are enqueued. Kernels share the communicator.
void add_stream_exchange(KernelTable& table, std::shared_ptr<StreamCommunicator> communicator);

}  // namespace cnn::layers
