#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "layers/cpu/parallel.h"
#include "layers/cpu/simd/loops.h"
#include "layers/workspace.h"
#include "runtime/divide_up.h"
#include "runtime/kernel.h"

// Code that our own kernels share: operand layouts, specs that request them, and a kernel class for
// function objects.
namespace cnn::layers::cpu {

// An image whose channels are contiguous for each pixel, either all (nhwc) or 16 at a time
// (nchw16c): [segments][groups][rows][columns], each group a matrix of pixels x channels per
// segment. In nhwc the whole tensor is one matrix.
struct Blocks {
  std::int64_t segments = 1, groups = 1, rows = 0, columns = 0;

  std::int64_t pixels() const { return segments * rows; }  // per group
  std::int64_t padded_channels() const { return groups * columns; }
  std::int64_t elements() const { return pixels() * padded_channels(); }
};
Blocks blocks_of(const TensorDesc& image);  // nhwc or nchw16c

// Computes the element index of channel c of pixel p of image n, in every image layout.
class Place {
 public:
  explicit Place(const TensorDesc& image);
  std::int64_t operator()(std::int64_t n, std::int64_t c, std::int64_t p) const {
    return (((n * outer_ + c / block_) * pixels_ + p) * block_) + c % block_;
  }
  std::int64_t pixels() const { return pixels_; }
  std::int64_t stored_channels() const { return outer_ * block_; }  // with padding

 private:
  std::int64_t outer_ = 0, block_ = 1, pixels_ = 0;  // [N][outer][pixels][block]
};

bool is_vectorised(DataType type);  // f32 or bf16: the types of TypedLoops
const TypedLoops& loops_of(const Loops& loops, DataType type);

// Returns nhwc or nchw16c: the first input's layout, else the one requested for the first output,
// else nhwc.
Layout channels_together(const Signature& request);

// Returns every operand as requested, but without a pitch: no loops of this folder support one.
KernelSpec as_requested(const Signature& request, std::size_t workspace = 0);

// Returns the operands with images (rank 4) in this layout, all others row-major.
KernelSpec in_layout(const Signature& request, Layout layout, std::size_t workspace = 0);

// Returns the operands with all layouts equal to one input's: element-wise ops run in any layout,
// and padding stays zero.
KernelSpec like_input(std::size_t input, const Signature& request);
KernelSpec like_first_input(const Signature& request);

// Returns the elements in memory, with padding.
std::int64_t stored_elements(const TensorDesc& desc);

// Writes to[i] = the sum of from[part * n + i] over the parts, in their order, for all i < n.
void sum_parts(const double* from, std::int64_t parts, std::int64_t n, float* to);

// The most parts of a batch that a weight gradient sums up side by side.
inline constexpr std::int64_t max_parts = 64;

// Partial sums that parts of a batch left, at most max_parts of them.
struct PartialSums {
  const float* from = nullptr;
  std::int64_t parts = 0, stride = 0;  // floats from one part to the next
  std::int64_t count = 0, tile = 1;    // floats of a part, a multiple of those of a tile
};

// Writes to[i] = the sum of from[part * stride + i] over the parts, in their order, for all i <
// count, tile by tile on the OpenMP team.
void add_parts(const Loops& loops, const PartialSums& sums, float* to);

// Returns the pointer `elements` further in an array of this type.
inline std::byte* advance(std::byte* data, std::int64_t elements, DataType type) {
  return data + elements * static_cast<std::int64_t>(size_of(type));
}
inline std::byte* at(const TensorView& view, std::int64_t element) {
  return advance(view.data, element, view.desc.type);
}

// Returns whether a kernel should write an output with non-temporal stores: the output exceeds the
// cache that its next reader could use, and overwrites no input.
bool is_streamed(const Operands& operands, const TensorView& out);

// Calls body(first, n) for ranges that cover all stored elements, each starting at a cache line.
template <class Body>
void parallel_elements(const TensorDesc& desc, const Body& body) {
  constexpr std::int64_t line = 64;
  const std::int64_t elements = stored_elements(desc);
  parallel_for(divide_up(elements, line), elements_per_thread / line,
               [&](std::int64_t first, std::int64_t last) {
                 const std::int64_t end = last * line < elements ? last * line : elements;
                 body(first * line, end - first * line);
               });
}

// y = map(x), element by element, between any two image layouts. Channels that only pad the last
// block of y become zero.
template <class From, class To, class Map>
void map_images(const TensorView& x, const TensorView& y, const Map& map) {
  const Place from(x.desc), to(y.desc);
  const std::int64_t channels = x.desc.shape[1];
  const auto* const in = reinterpret_cast<const From*>(x.data);
  auto* const out = reinterpret_cast<To*>(y.data);
  parallel_for(x.desc.shape[0] * from.pixels(), elements_per_thread / channels + 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t n = i / from.pixels();
                   const std::int64_t p = i % from.pixels();
                   for (std::int64_t c = 0; c < channels; ++c) {
                     out[to(n, c, p)] = map(in[from(n, c, p)]);
                   }
                   for (std::int64_t c = channels; c < to.stored_channels(); ++c) {
                     out[to(n, c, p)] = To{};
                   }
                 }
               });
}

// Calls work(operands) in stream order.
template <class Work>
class OwnKernel final : public Kernel {
 public:
  explicit OwnKernel(Work work) : work_(std::move(work)) {}
  void run(Stream& stream, const Operands& operands) override {
    stream.host([this, &operands] { work_(operands); });
  }

 private:
  Work work_;
};

template <class Work>
std::unique_ptr<Kernel> own_kernel(Work work) {
  return std::make_unique<OwnKernel<Work>>(std::move(work));
}

}  // namespace cnn::layers::cpu
