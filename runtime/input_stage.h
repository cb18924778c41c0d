#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/tensor.h"

namespace cnn {

// Brings the inputs of the next step to the device while a step runs there: two device buffers for
// each input, filled in turn on a stream of its own. For devices with memory apart from the host's;
// the step then copies within the device.
class InputStage {
 public:
  // Returns the bytes of the device for inputs of these descriptions: both buffers of all.
  static std::size_t bytes_for(std::span<const TensorDesc> inputs);

  // memory: of the device, bytes_for(inputs), 64-byte aligned. Device and memory must outlive it.
  InputStage(Device& device, std::span<const TensorDesc> inputs, std::span<std::byte> memory);
  ~InputStage();
  InputStage(const InputStage&) = delete;
  InputStage& operator=(const InputStage&) = delete;

  // Starts to copy host tensors, one for each input, best in memory of Device::allocate_host, into
  // the buffers that take() did not return last. They must not change until take() or forget().
  void stage(std::span<const TensorView> host);
  bool is_filled() const { return filled_; }  // something is staged that was not taken

  // Waits for what was staged; the host tensors are free then. Its views on the device stay valid
  // until the second stage() from now. Throws Error if a copy failed or nothing is staged.
  std::span<const TensorView> take();

  // Waits for copies that nobody will take.
  void forget() noexcept;

 private:
  std::array<std::vector<TensorView>, 2> buffers_;
  std::size_t next_ = 0;  // of the buffers: to be filled, or being filled
  bool filled_ = false;
  std::unique_ptr<Stream> stream_;  // last: it stops before all else goes
};

}  // namespace cnn
