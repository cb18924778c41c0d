#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>
#include <functional>
#include <span>
#include <string>
#include <vector>

// Lets the emulated libraries enqueue work on streams of the emulated runtime.
namespace cnn::tests::emulated {

// Memory that a piece of work reads or writes.
struct Operand {
  std::string name;  // such as "matrix A"
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::size_t alignment = 1;
};

// Returns why the stream's device cannot use the operands, or "" if it can. It names the first one
// that is unaligned or does not lie in one block of the device's memory.
std::string why_unusable(std::span<const Operand> operands, cudaStream_t stream);

// Queues work with these operands; an exception from it breaks the device. Returns
// cudaLaunchKernel's result.
cudaError_t enqueue(cudaStream_t stream, const std::string& name, std::span<const Operand> operands,
                    const std::function<void()>& body);

}  // namespace cnn::tests::emulated
