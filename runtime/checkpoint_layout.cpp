#include "runtime/checkpoint_layout.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace cnn {
namespace {

// Returns, for each axis of the saved shape, the axis of the logical shape.
std::array<std::size_t, 4> saved_axes(SavedAs order) {
  return order == SavedAs::hwio ? std::array<std::size_t, 4>{2, 3, 1, 0}
                                : std::array<std::size_t, 4>{2, 3, 0, 1};
}

bool is_permuted(const TensorInfo& info) {
  return info.saved_as != SavedAs::same && info.desc.shape.rank() == 4;
}

// Calls visit(position in saved order, position in plain order) for every element.
template <class Visit>
void for_each_saved(const TensorInfo& info, Visit visit) {
  const Shape& shape = info.desc.shape;
  const std::array<std::size_t, 4> axes = saved_axes(info.saved_as);
  std::array<std::int64_t, 4> stride{};
  std::int64_t step = 1;
  for (std::size_t axis = 4; axis-- > 0;) {
    stride[axis] = step;
    step *= shape[axis];
  }
  std::size_t saved = 0;
  for (std::int64_t a = 0; a < shape[axes[0]]; ++a) {
    for (std::int64_t b = 0; b < shape[axes[1]]; ++b) {
      for (std::int64_t c = 0; c < shape[axes[2]]; ++c) {
        const std::int64_t base = a * stride[axes[0]] + b * stride[axes[1]] + c * stride[axes[2]];
        for (std::int64_t d = 0; d < shape[axes[3]]; ++d) {
          visit(saved++, static_cast<std::size_t>(base + d * stride[axes[3]]));
        }
      }
    }
  }
}

}  // namespace

Shape checkpoint_shape(const TensorInfo& info) {
  if (!is_permuted(info)) {
    return info.desc.shape;
  }
  const std::array<std::size_t, 4> axes = saved_axes(info.saved_as);
  const Shape& shape = info.desc.shape;
  return {shape[axes[0]], shape[axes[1]], shape[axes[2]], shape[axes[3]]};
}

void to_checkpoint_layout(const TensorInfo& info, std::span<const float> plain,
                          std::span<float> saved) {
  if (!is_permuted(info)) {
    std::copy(plain.begin(), plain.end(), saved.begin());
    return;
  }
  for_each_saved(info, [&](std::size_t s, std::size_t p) { saved[s] = plain[p]; });
}

void from_checkpoint_layout(const TensorInfo& info, std::span<const float> saved,
                            std::span<float> plain) {
  if (!is_permuted(info)) {
    std::copy(saved.begin(), saved.end(), plain.begin());
    return;
  }
  for_each_saved(info, [&](std::size_t s, std::size_t p) { plain[p] = saved[s]; });
}

}  // namespace cnn
