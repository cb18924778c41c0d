#include "layers/cpu/own_kernel.h"

#include <algorithm>
#include <array>

#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn::layers::cpu {

namespace {

// Kernels ask for the places of pixels in every step: the text of an error is built only for one.
[[noreturn]] void reject(const TensorDesc& image) {
  throw Error("no kernel takes " + to_string(image) + " as an image");
}

}  // namespace

Blocks blocks_of(const TensorDesc& image) {
  const Shape& s = image.shape;
  const bool nhwc = image.layout == Layout::nhwc;
  if (s.rank() != 4 || (!nhwc && image.layout != Layout::nchw16c)) {
    reject(image);
  }
  if (nhwc) {
    return {.rows = s[0] * s[2] * s[3], .columns = s[1]};
  }
  return {.segments = s[0], .groups = divide_up(s[1], 16), .rows = s[2] * s[3], .columns = 16};
}

Place::Place(const TensorDesc& image) : pixels_(image.shape[2] * image.shape[3]) {
  if (image.shape.rank() != 4 || image.layout == Layout::packed) {
    reject(image);
  }
  const std::int64_t channels = image.shape[1];
  block_ = image.layout == Layout::nhwc ? channels : image.layout == Layout::nchw16c ? 16 : 1;
  outer_ = divide_up(channels, block_);
}

bool is_vectorised(DataType type) { return type == DataType::f32 || type == DataType::bf16; }

const TypedLoops& loops_of(const Loops& loops, DataType type) {
  if (!is_vectorised(type)) {
    throw Error("there are no loops over " + std::string(name_of(type)));
  }
  return type == DataType::f32 ? loops.f32 : loops.bf16;
}

Layout channels_together(const Signature& request) {
  for (const auto* side : {&request.in, &request.out}) {
    if (!side->empty() && side->front().shape.rank() == 4) {
      const Layout layout = side->front().layout;
      if (layout == Layout::nhwc || layout == Layout::nchw16c) {
        return layout;
      }
    }
  }
  return Layout::nhwc;
}

KernelSpec as_requested(const Signature& request, std::size_t workspace) {
  KernelSpec spec{.workspace = workspace, .in = request.in, .out = request.out};
  for (auto* side : {&spec.in, &spec.out}) {
    for (TensorDesc& desc : *side) {
      desc.pitch = 0;
    }
  }
  return spec;
}

KernelSpec in_layout(const Signature& request, Layout layout, std::size_t workspace) {
  KernelSpec spec = as_requested(request, workspace);
  for (auto* side : {&spec.in, &spec.out}) {
    for (TensorDesc& desc : *side) {
      desc.layout = desc.shape.rank() == 4 ? layout : Layout::nchw;
      desc.packing = nullptr;
    }
  }
  return spec;
}

KernelSpec like_first_input(const Signature& request) { return like_input(0, request); }

KernelSpec like_input(std::size_t input, const Signature& request) {
  KernelSpec spec = as_requested(request);
  for (auto* side : {&spec.in, &spec.out}) {
    for (TensorDesc& desc : *side) {
      desc.layout = request.in[input].layout;
      desc.packing = request.in[input].packing;
    }
  }
  return spec;
}

bool is_streamed(const Operands& operands, const TensorView& out) {
  constexpr std::size_t min_bytes = 16u << 20;
  return out.desc.bytes() >= min_bytes &&
         std::ranges::none_of(operands.in,
                              [&](const TensorView& in) { return in.data == out.data; });
}

void sum_parts(const double* from, std::int64_t parts, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      sum += from[part * n + i];
    }
    to[i] = static_cast<float>(sum);
  }
}

void add_parts(const Loops& loops, const PartialSums& sums, float* to) {
  parallel_for(sums.count / sums.tile, elements_per_thread / sums.tile / sums.parts + 1,
               [&](std::int64_t first, std::int64_t last) {
                 std::array<const void*, max_parts> parts{};
                 for (std::int64_t part = 0; part < sums.parts; ++part) {
                   parts[static_cast<std::size_t>(part)] =
                       sums.from + part * sums.stride + first * sums.tile;
                 }
                 loops.f32.add({.x = parts.data(),
                                .inputs = sums.parts,
                                .y = to + first * sums.tile,
                                .n = (last - first) * sums.tile});
               });
}

std::int64_t stored_elements(const TensorDesc& desc) {
  return static_cast<std::int64_t>(desc.bytes() / size_of(desc.type));
}

}  // namespace cnn::layers::cpu
