#pragma once

#include <cstdint>
#include <memory>

#include "runtime/communicator.h"
#include "runtime/kernel.h"

namespace cnn::layers::cuda {

// Adds what exchanges gradients with other ranks. Kernels share the communicator.
void add_exchange(KernelTable& table, std::shared_ptr<StreamCommunicator> communicator);

// Enqueues a wait of the device until the host has set the flag, which both see, to something other
// than 0; takes it back to 0 if it is 1. One thread looks over and over.
void wait_for_flag(Stream& stream, std::uint32_t* flag);

}  // namespace cnn::layers::cuda
