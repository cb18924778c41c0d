#include "layers/batch_slice.h"

#include <algorithm>

#include "layers/operands.h"

namespace cnn::layers {

namespace {

Shape with_examples(Shape shape, std::int64_t examples) {
  shape[0] = examples;
  return shape;
}

}  // namespace

std::vector<TensorDesc> SliceBatch::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape.rank() > 0, *this, in, "takes a batch");
  require(first >= 0 && count > 0 && first + count <= in[0].shape[0], *this, in,
          "the slice is outside of the batch");
  return {described(with_examples(in[0].shape, count), in[0].type)};
}

void SliceBatch::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto bytes = static_cast<std::int64_t>(out[0].desc.bytes());
  std::copy_n(in[0].data + bytes / count * first, bytes, out[0].data);
}

std::vector<TensorDesc> ConcatBatch::infer(std::span<const TensorDesc> in) const {
  require(!in.empty(), *this, in, "takes at least one operand");
  std::int64_t examples = 0;
  for (const TensorDesc& desc : in) {
    require(desc.shape.rank() > 0 && is_real(desc.type) && desc.type == in[0].type &&
                with_examples(desc.shape, 1) == with_examples(in[0].shape, 1),
            *this, in, "takes real tensors that differ in their number of examples only");
    examples += desc.shape[0];
  }
  return {described(with_examples(in[0].shape, examples), in[0].type)};
}

void ConcatBatch::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  std::byte* to = out[0].data;
  for (const TensorView& part : in) {
    to = std::copy_n(part.data, part.desc.bytes(), to);
  }
}

std::vector<std::optional<Value>> ConcatBatch::backward(const Backprop& b) const {
  std::vector<std::optional<Value>> result;
  std::int64_t first = 0;
  for (const Value& part : b.in) {
    const std::int64_t count = part.desc().shape[0];
    result.emplace_back(slice_batch(*b.grad[0], first, count));
    first += count;
  }
  return result;
}

Value slice_batch(Value x, std::int64_t first, std::int64_t count) {
  return emit(SliceBatch(first, count), {x});
}

Value concat_batch(std::span<const Value> parts) { return emit_all(ConcatBatch(), parts).front(); }

}  // namespace cnn::layers
