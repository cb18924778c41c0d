#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/tensor.h"

namespace cnn {

// Double-buffers a step's inputs: copies the next inputs to the device on a separate stream while a
// step runs there. For devices with memory apart from the host's; the step then copies within the
// device.
class InputStage {
 public:
  // Returns the device bytes of both buffers for inputs of these descriptions.
  static std::size_t bytes_for(std::span<const TensorDesc> inputs);

  // memory: device memory of bytes_for(inputs) bytes, 64-byte aligned. Device and memory must
  // outlive the stage.
  InputStage(Device& device, std::span<const TensorDesc> inputs, std::span<std::byte> memory);
  ~InputStage();
  InputStage(const InputStage&) = delete;
  InputStage& operator=(const InputStage&) = delete;

  // Starts to copy host tensors, one for each input, best in memory of Device::allocate_host, into
  // the buffers that take() did not return last. The tensors must not change until take() or
  // forget().
  void stage(std::span<const TensorView> host);
  bool is_filled() const { return filled_; }  // a staged batch waits for take()

  // Waits for the staged copies; the host tensors may change then. The returned device views stay
  // valid until the second stage() from now. Throws Error if a copy failed or nothing is staged.
  std::span<const TensorView> take();

  // Waits for staged copies and drops them.
  void forget() noexcept;

 private:
  std::array<std::vector<TensorView>, 2> buffers_;
  std::size_t next_ = 0;  // index in buffers_ of the next copy, or of the running one
  bool filled_ = false;
  // Last member: the stream stops before everything else is destroyed.
  std::unique_ptr<Stream> stream_;
};

}  // namespace cnn
