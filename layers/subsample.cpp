#include "layers/subsample.h"

#include <algorithm>

#include "layers/operands.h"

namespace cnn::layers {

namespace {

Shape kept_shape(const Window& w, const Shape& x) {
  return {x[0], x[1], w.output_h(x[2]), w.output_w(x[3])};
}

// Calls visit(index in y, index in x) for every element of y whose pixel lies in the image.
template <class Visit>
void for_each_kept(const Window& w, const Dims& x, const Dims& y, Visit visit) {
  for (std::int64_t i = 0; i < y.n * y.c * y.pixels(); ++i) {
    const std::int64_t row = i / y.w % y.h * w.stride_h - w.pad_top;
    const std::int64_t column = i % y.w * w.stride_w - w.pad_left;
    if (row < x.h && column < x.w) {
      visit(i, i / y.pixels() * x.pixels() + row * x.w + column);
    }
  }
}

}  // namespace

std::vector<TensorDesc> Subsample::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape.rank() == 4 && is_real(in[0].type), *this, in, "takes real images");
  require(window.kernel_h == 1 && window.kernel_w == 1 && window.pad_top <= 0 &&
              window.pad_left <= 0 && -window.pad_top < window.stride_h &&
              -window.pad_left < window.stride_w,
          *this, in, "keeps one pixel of each stride, at an offset below the stride");
  return {described(kept_shape(window, in[0].shape), in[0].type)};
}

void Subsample::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const float* x = in[0].as<float>().data();
  const auto y = out[0].as<float>();
  std::ranges::fill(y, 0.0F);
  for_each_kept(window, dims(in[0].desc.shape), dims(out[0].desc.shape),
                [&](std::int64_t to, std::int64_t from) { y.data()[to] = x[from]; });
}

std::vector<std::optional<Value>> Subsample::backward(const Backprop& b) const {
  return {emit(SubsampleBackward(window, b.in[0].desc().shape), {*b.grad[0]})};
}

std::vector<TensorDesc> SubsampleBackward::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape == kept_shape(window, x_shape), *this, in,
          "takes dy of the pixels kept of " + to_string(x_shape));
  return {described(x_shape, in[0].type)};
}

void SubsampleBackward::reference(std::span<const TensorView> in,
                                  std::span<const TensorView> out) const {
  const float* dy = in[0].as<float>().data();
  const auto dx = out[0].as<float>();
  std::ranges::fill(dx, 0.0F);
  for_each_kept(window, dims(x_shape), dims(in[0].desc.shape),
                [&](std::int64_t from, std::int64_t to) { dx.data()[to] = dy[from]; });
}

Value subsample(Value x, std::int64_t stride, std::int64_t offset) {
  return emit(Subsample({.stride_h = stride,
                         .stride_w = stride,
                         .pad_top = -offset,
                         .pad_bottom = offset,
                         .pad_left = -offset,
                         .pad_right = offset}),
              {x});
}

}  // namespace cnn::layers
