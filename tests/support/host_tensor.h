#pragma once

#include <cstddef>
#include <vector>

#include "runtime/tensor.h"

namespace cnn::tests {

// A tensor on the host, aligned to 64 bytes. It starts with all bits one, which is NaN in every
// floating-point type, so that unwritten elements show. A guard region behind it reveals writes
// past the end. With a pitch it begins 16 bytes later, as a view may, and the gaps between pixels
// reveal writes too.
class HostTensor {
 public:
  explicit HostTensor(TensorDesc desc);
  HostTensor(HostTensor&&) = default;
  HostTensor& operator=(HostTensor&&) = default;
  TensorView view() const { return {desc_, data_}; }
  const TensorDesc& desc() const { return desc_; }
  bool guard_is_intact() const;
  bool gaps_are_intact() const;  // all bits between the pixels are still one

 private:
  TensorDesc desc_;
  std::vector<std::byte> bytes_;  // with padding for the alignment; moving keeps its address
  std::byte* data_ = nullptr;
};

HostTensor copy_of(const TensorView& view);

// Convert between plain values (row-major; f32 for floating-point types) and the stored form. The
// stored form is f32, bf16 or f16 in nchw, nhwc (at any pitch) or nchw16c, or i32 or u8. unpack
// throws Error if a padded channel is not zero; both throw Error for an unknown layout or type.
void pack(const TensorView& plain_values, const TensorView& stored);
void unpack(const TensorView& stored, const TensorView& plain_values);

// Rounds plain f32 values to the precision of `type`.
void round_to(DataType type, const TensorView& plain_values);

}  // namespace cnn::tests
