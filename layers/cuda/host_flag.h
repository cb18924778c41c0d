#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace cnn::layers::cuda {

// Enqueues a wait of the device until the host has set the flag, which both see, to something other
// than 0; takes it back to 0 if it is 1. One thread looks over and over.
void wait_for_flag(Stream& stream, std::uint32_t* flag);

}  // namespace cnn::layers::cuda
