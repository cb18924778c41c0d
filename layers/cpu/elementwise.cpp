#include "layers/elementwise.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

namespace {

std::optional<KernelSpec> describe_same(const Signature& request) {
  return is_vectorised(request.in[0].type) ? std::optional(like_first_input(request))
                                           : std::nullopt;
}

// Maximum number of tensors in one sum. y may alias any of them, so all are read before any element
// is written.
constexpr std::size_t max_terms = 64;

void add_all(const TypedLoops& typed, bool relu, const Operands& o) {
  const bool stream = is_streamed(o, o.out[0]);
  parallel_elements(o.out[0].desc, [&](std::int64_t first, std::int64_t n) {
    std::array<const void*, max_terms> from{};
    for (std::size_t i = 0; i < o.in.size(); ++i) {
      from[i] = at(o.in[i], first);
    }
    typed.add({.x = from.data(),
               .inputs = static_cast<std::int64_t>(o.in.size()),
               .y = at(o.out[0], first),
               .n = n,
               .relu = relu,
               .stream = stream});
  });
}

// Channels that only pad the last block of nchw16c stay zero.
void fill_image(const TypedLoops& typed, float value, const TensorView& y) {
  const Blocks blocks = blocks_of(y.desc);
  const std::int64_t channels = y.desc.shape[1];
  parallel_for(blocks.segments * blocks.groups, elements_per_thread / (blocks.rows * 16) + 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   std::array<float, 16> lanes{};
                   const std::int64_t left = channels - i % blocks.groups * 16;
                   std::fill_n(lanes.begin(), std::min<std::int64_t>(16, left), value);
                   typed.repeat(lanes.data(), at(y, i * blocks.rows * 16), blocks.rows, 16);
                 }
               });
}

void fill(const TypedLoops& typed, float value, const TensorView& y) {
  if (y.desc.layout == Layout::nchw16c) {
    fill_image(typed, value, y);
    return;
  }
  parallel_elements(
      y.desc, [&](std::int64_t first, std::int64_t n) { typed.fill(at(y, first), n, value); });
}

template <class To>
To stored(float value) {
  if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bf16(value);
  } else {
    return value;
  }
}

// Runs on images with few channels.
template <class From, class To>
void normalise_images(const Normalise& op, const TensorView& x, const TensorView& y) {
  map_images<From, To>(x, y, [&op](From pixel) {
    return stored<To>(static_cast<float>(pixel) * op.scale + op.shift);
  });
}

void normalise(const Loops& loops, const Normalise& op, const TensorView& x, const TensorView& y) {
  const bool bytes = x.desc.type == DataType::u8;
  if (x.desc.layout == y.desc.layout && x.desc.layout != Layout::nchw16c) {
    const TypedLoops& typed = loops_of(loops, y.desc.type);
    const std::array<float, 2> factors{op.scale, op.shift};
    parallel_elements(x.desc, [&](std::int64_t first, std::int64_t n) {
      if (bytes) {
        typed.affine_u8(x.as<std::uint8_t>().data() + first, at(y, first), n, factors.data());
      } else {
        typed.affine_f32(x.as<float>().data() + first, at(y, first), n, factors.data());
      }
    });
  } else if (y.desc.type == DataType::f32) {
    bytes ? normalise_images<std::uint8_t, float>(op, x, y)
          : normalise_images<float, float>(op, x, y);
  } else {
    bytes ? normalise_images<std::uint8_t, BFloat16>(op, x, y)
          : normalise_images<float, BFloat16>(op, x, y);
  }
}

std::optional<KernelSpec> describe_normalise(const Signature& request) {
  const bool packed =
      request.in[0].layout == Layout::packed || request.out[0].layout == Layout::packed;
  if (packed || !is_vectorised(request.out[0].type)) {
    return std::nullopt;
  }
  return as_requested(request);
}

}  // namespace

void add_elementwise_rows(KernelTable& table, const Loops& loops) {
  table.add<Add>(
      [](const Add&, const Signature& request) {
        return request.in.size() <= max_terms ? describe_same(request) : std::nullopt;
      },
      [&loops](const Add& op, const Signature& s) {
        const TypedLoops& typed = loops_of(loops, s.in[0].type);
        return own_kernel([&typed, relu = op.relu](const Operands& o) { add_all(typed, relu, o); });
      });
  table.add<Scale>([](const Scale&, const Signature& request) { return describe_same(request); },
                   [&loops](const Scale& op, const Signature& s) {
                     const TypedLoops& typed = loops_of(loops, s.in[0].type);
                     return own_kernel([&typed, factor = op.factor](const Operands& o) {
                       parallel_elements(o.in[0].desc, [&](std::int64_t first, std::int64_t n) {
                         typed.scale(at(o.in[0], first), at(o.out[0], first), n, factor);
                       });
                     });
                   });
  table.add<Fill>(
      [](const Fill&, const Signature& request) -> std::optional<KernelSpec> {
        const TensorDesc& y = request.out[0];
        if (!is_vectorised(y.type) || y.layout == Layout::packed) {
          return std::nullopt;
        }
        return KernelSpec{.out = request.out};
      },
      [&loops](const Fill& op, const Signature& s) {
        const TypedLoops& typed = loops_of(loops, s.out[0].type);
        return own_kernel(
            [&typed, value = op.value](const Operands& o) { fill(typed, value, o.out[0]); });
      });
  table.add<Normalise>(
      [](const Normalise&, const Signature& request) { return describe_normalise(request); },
      [&loops](const Normalise& op, const Signature&) {
        return own_kernel(
            [&loops, op](const Operands& o) { normalise(loops, op, o.in[0], o.out[0]); });
      });
}

}  // namespace cnn::layers::cpu
