#pragma once

#include <functional>
#include <memory>
#include <span>

#include "runtime/device.h"

namespace cnn::cuda {

// Captures the work that enqueue() gives to the streams into a CUDA graph. All streams fork from
// the first one and join it before the capture ends. Rethrows errors of enqueue(), with the streams
// as before; throws Error if CUDA cannot capture a call, such as a synchronisation.
std::unique_ptr<Recording> capture(std::span<Stream* const> streams,
                                   const std::function<void()>& enqueue);

}  // namespace cnn::cuda
