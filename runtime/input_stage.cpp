#include "runtime/input_stage.h"

#include <exception>

#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn {

std::size_t InputStage::bytes_for(std::span<const TensorDesc> inputs) {
  std::size_t bytes = 0;
  for (const TensorDesc& desc : inputs) {
    bytes += 2 * aligned(desc.bytes());
  }
  return bytes;
}

InputStage::InputStage(Device& device, std::span<const TensorDesc> inputs,
                       std::span<std::byte> memory)
    : stream_(device.make_stream(Lane::copy_in)) {
  check(memory.size() >= bytes_for(inputs), "the memory for inputs is too small");
  std::byte* next = memory.data();
  for (std::vector<TensorView>& buffers : buffers_) {
    for (const TensorDesc& desc : inputs) {
      buffers.push_back({.desc = desc, .data = next});
      next += aligned(desc.bytes());
    }
  }
}

InputStage::~InputStage() { forget(); }

void InputStage::stage(std::span<const TensorView> host) {
  check(!filled_, "inputs are staged that no step has taken");
  const std::vector<TensorView>& to = buffers_.at(next_);
  check(host.size() == to.size(), "not every input is staged");
  for (std::size_t i = 0; i < to.size(); ++i) {
    check(host[i].desc == to[i].desc, "an input is staged that is described differently");
  }
  filled_ = true;
  for (std::size_t i = 0; i < to.size(); ++i) {
    stream_->copy(to[i].data, host[i].data, to[i].desc.bytes());
  }
}

std::span<const TensorView> InputStage::take() {
  check(filled_, "no inputs are staged");
  filled_ = false;
  stream_->synchronize();
  const std::vector<TensorView>& taken = buffers_.at(next_);
  next_ = 1 - next_;
  return taken;
}

void InputStage::forget() noexcept {
  filled_ = false;
  try {
    stream_->synchronize();
  } catch (const std::exception&) {  // of unneeded copies
    return;
  }
}

}  // namespace cnn
