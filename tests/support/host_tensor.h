#pragma once

#include <cstddef>
#include <vector>

#include "runtime/tensor.h"

namespace cnn::tests {

// One tensor on the host, 64-byte aligned. Starts as all ones in every bit: NaN in every real type,
// so that what nobody writes shows. A guard behind the last byte shows writes past the end. With a
// pitch it begins 16 bytes later, as a part of an image may, and what lies between its pixels shows
// writes there.
class HostTensor {
 public:
  explicit HostTensor(TensorDesc desc);
  HostTensor(HostTensor&&) = default;
  HostTensor& operator=(HostTensor&&) = default;
  TensorView view() const { return {desc_, data_}; }
  const TensorDesc& desc() const { return desc_; }
  bool guard_is_intact() const;
  bool gaps_are_intact() const;  // all ones still between the pixels

 private:
  TensorDesc desc_;
  std::vector<std::byte> bytes_;  // with room to align; moving it keeps its address
  std::byte* data_ = nullptr;
};

HostTensor copy_of(const TensorView& view);

// Between plain values (row-major; f32 for real types) and the stored form: f32, bf16 or f16 in
// nchw, nhwc (at any pitch) or nchw16c, i32 and u8. unpack throws Error if a padded channel is not
// zero, both throw on a layout or type they do not know.
void pack(const TensorView& plain_values, const TensorView& stored);
void unpack(const TensorView& stored, const TensorView& plain_values);

// Rounds plain f32 values to what `type` can hold.
void round_to(DataType type, const TensorView& plain_values);

}  // namespace cnn::tests
