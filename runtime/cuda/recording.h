#pragma once

#include <functional>
#include <memory>
#include <span>

#include "runtime/device.h"

namespace cnn::cuda {

// Captures what enqueue() gives to the streams into a CUDA graph. All streams begin with the first
// one and end before its end. Errors of enqueue() are thrown on, and the streams are as before;
// throws Error if something that was enqueued cannot be captured, such as a synchronisation.
std::unique_ptr<Recording> capture(std::span<Stream* const> streams,
                                   const std::function<void()>& enqueue);

}  // namespace cnn::cuda
