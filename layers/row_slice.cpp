#include "layers/row_slice.h"

#include <cstring>
#include <optional>
#include <vector>

#include "layers/operands.h"

namespace cnn::layers {

namespace {

Shape with_rows(Shape shape, std::int64_t rows) {
  shape[2] = rows;
  return shape;
}

// Copies `rows` rows of every channel between two row-major images.
struct RowCopy {
  TensorView from, to;
  std::int64_t from_first = 0, to_first = 0, rows = 0;

  void run() const {
    const Dims source = dims(from.desc.shape), target = dims(to.desc.shape);
    const auto row = source.w * static_cast<std::int64_t>(size_of(from.desc.type));
    for (std::int64_t nc = 0; nc < source.n * source.c; ++nc) {
      std::memcpy(to.data + (nc * target.h + to_first) * row,
                  from.data + (nc * source.h + from_first) * row,
                  static_cast<std::size_t>(rows * row));
    }
  }
};

}  // namespace

std::vector<TensorDesc> SliceRows::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape.rank() == 4, *this, in, "takes images");
  require(first >= 0 && count > 0 && first + count <= in[0].shape[2], *this, in,
          "the rows are outside of the image");
  return {described(with_rows(in[0].shape, count), in[0].type)};
}

void SliceRows::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  RowCopy{.from = in[0], .to = out[0], .from_first = first, .rows = count}.run();
}

std::vector<std::optional<Value>> SliceRows::backward(const Backprop& b) const {
  return {emit(SliceRowsBackward(first, b.in[0].desc().shape[2]), {*b.grad[0]})};
}

std::vector<TensorDesc> SliceRowsBackward::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape.rank() == 4 && is_real(in[0].type), *this, in, "takes real images");
  require(first >= 0 && first + in[0].shape[2] <= height, *this, in,
          "the rows are outside of the image");
  return {described(with_rows(in[0].shape, height), in[0].type)};
}

void SliceRowsBackward::reference(std::span<const TensorView> in,
                                  std::span<const TensorView> out) const {
  std::memset(out[0].data, 0, out[0].desc.bytes());
  RowCopy{.from = in[0], .to = out[0], .to_first = first, .rows = in[0].desc.shape[2]}.run();
}

std::vector<TensorDesc> ConcatRows::infer(std::span<const TensorDesc> in) const {
  require(!in.empty(), *this, in, "takes at least one operand");
  std::int64_t rows = 0;
  for (const TensorDesc& desc : in) {
    require(desc.shape.rank() == 4 && is_real(desc.type) && desc.type == in[0].type &&
                with_rows(desc.shape, 1) == with_rows(in[0].shape, 1),
            *this, in, "takes real images that differ in their number of rows only");
    rows += desc.shape[2];
  }
  return {described(with_rows(in[0].shape, rows), in[0].type)};
}

void ConcatRows::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  std::int64_t first = 0;
  for (const TensorView& part : in) {
    const std::int64_t rows = part.desc.shape[2];
    RowCopy{.from = part, .to = out[0], .to_first = first, .rows = rows}.run();
    first += rows;
  }
}

std::vector<std::optional<Value>> ConcatRows::backward(const Backprop& b) const {
  std::vector<std::optional<Value>> result;
  std::int64_t first = 0;
  for (const Value& part : b.in) {
    const std::int64_t count = part.desc().shape[2];
    result.emplace_back(slice_rows(*b.grad[0], first, count));
    first += count;
  }
  return result;
}

Value slice_rows(Value x, std::int64_t first, std::int64_t count) {
  return emit(SliceRows(first, count), {x});
}

Value concat_rows(std::span<const Value> parts) { return emit_all(ConcatRows(), parts).front(); }

}  // namespace cnn::layers
