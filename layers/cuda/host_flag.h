#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace cnn::layers::cuda {

// Spin-wait on the device: enqueues a kernel of one thread that polls three words in memory that
// host and device share: done, failed and waits. The wait ends when the host has set one of the
// first two to 1; the kernel resets the first one to 0, and keeps the third one at 1 while it
// waits.
void wait_for_flag(Stream& stream, std::uint32_t* flag);

}  // namespace cnn::layers::cuda
