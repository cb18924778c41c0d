#pragma once

#include <cstdint>

#include "layers/window.h"
#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// Keeps one pixel of each stride x stride block: y[n,c,p,q] = x[n,c,p s + o,q s + o], and 0 if that
// pixel lies past the image. in: x [N,C,H,W]. out: y [N,C,P,Q], the size for offset 0.
class Subsample final : public Op {
 public:
  // The window of one pixel; negative padding before it is the offset.
  explicit Subsample(Window w) : window(w) {}
  std::string_view name() const override { return "subsample"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;

  Window window;
};

// in: dy [N,C,P,Q]. out: dx [N,C,H,W], 0 for pixels that no output keeps.
class SubsampleBackward final : public Op {
 public:
  SubsampleBackward(Window w, Shape x) : window(w), x_shape(x) {}
  std::string_view name() const override { return "subsample_backward"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  Window window;
  Shape x_shape;
};

// offset: the first row and column that is kept, less than the stride.
Value subsample(Value x, std::int64_t stride, std::int64_t offset);

}  // namespace cnn::layers
