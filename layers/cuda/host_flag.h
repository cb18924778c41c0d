#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace cnn::layers::cuda {

// Enqueues a wait of the device for a flag of three words in memory that host and device see: done,
// failed and waits. The wait ends when the host has set one of the first two to 1; it takes the
// first one back to 0, and keeps the third one at 1 while it lasts. One thread looks over and over.
void wait_for_flag(Stream& stream, std::uint32_t* flag);

}  // namespace cnn::layers::cuda
