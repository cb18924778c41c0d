#include "tests/support/cuda/runtime/library_work.h"

#include <cstdint>
#include <mutex>

#include "tests/support/cuda/runtime/calls.h"
#include "tests/support/cuda/runtime/violation.h"

namespace cnn::tests::emulated {
namespace {

std::string why_unusable(const Operand& operand, const CUstream_st& stream) {
  const Memory& memory = driver().memory;
  const std::string what = operand.name + " at " + memory.name_of(operand.data);
  if (reinterpret_cast<std::uintptr_t>(operand.data) % operand.alignment != 0) {
    return what + " is not aligned to " + std::to_string(operand.alignment) + " bytes";
  }
  const Block* block = memory.find(operand.data);
  if (block == nullptr || (block->kind == MemoryKind::device && block->device != stream.device)) {
    return what + " is no memory of device " + std::to_string(stream.device);
  }
  const auto* end = static_cast<const std::byte*>(operand.data) + operand.bytes;
  return end <= block->data + block->bytes
             ? ""
             : what + " has " + std::to_string(operand.bytes) + " bytes and leaves its block";
}

}  // namespace

std::string why_unusable(std::span<const Operand> operands, cudaStream_t stream) {
  const std::scoped_lock lock(driver().lock.mutex);
  for (const Operand& operand : operands) {
    if (operand.bytes > 0) {
      if (std::string why = why_unusable(operand, *stream); !why.empty()) {
        return why;
      }
    }
  }
  return "";
}

cudaError_t enqueue(cudaStream_t stream, const std::string& name, std::span<const Operand> operands,
                    const std::function<void()>& body) {
  const Call call(name);
  if (call.refused() != cudaSuccess) {
    return call.refused();
  }
  if (!is_alive(stream, name)) {
    return returned(cudaErrorInvalidResourceHandle);
  }
  if (stream->device != current_device()) {
    violate(name + " was started on a stream of device " + std::to_string(stream->device) +
            " while device " + std::to_string(current_device()) + " was the current one");
    return returned(cudaErrorInvalidResourceHandle);
  }
  Work work{.name = name, .body = body};
  for (const Operand& operand : operands) {
    work.uses.push_back(operand.data);
  }
  ++driver().executions;
  driver().enqueue(*stream, std::move(work));
  return cudaSuccess;
}

}  // namespace cnn::tests::emulated
