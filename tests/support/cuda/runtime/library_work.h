#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>
#include <functional>
#include <span>
#include <string>
#include <vector>

// How the emulated libraries put their work on streams of the emulated runtime.
namespace cnn::tests::emulated {

// Memory that a piece of work reads or writes.
struct Operand {
  std::string name;  // "matrix A"
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::size_t alignment = 1;
};

// Why the device of the stream cannot use the operands: the first that is unaligned, or does not
// lie in one block of its memory. Empty if it can.
std::string why_unusable(std::span<const Operand> operands, cudaStream_t stream);

// Queues the work, which uses these operands; what it throws breaks the device. The result is of
// cudaLaunchKernel.
cudaError_t enqueue(cudaStream_t stream, const std::string& name, std::span<const Operand> operands,
                    const std::function<void()>& body);

}  // namespace cnn::tests::emulated
