#include "layers/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "layers/initializer.h"

namespace cnn::layers::cpu {

namespace {

// The mask of one step: see keeps() in layers/dropout.h.
struct Mask {
  Mask(const Dropout& op, const Operands& o)
      : stream(random_bits(op.seed, static_cast<std::uint32_t>(o.in[1].as<std::int32_t>()[0]))),
        threshold(static_cast<std::uint32_t>(std::ceil(op.keep * 0x1p24))),
        keep(static_cast<float>(op.keep)) {}

  std::uint64_t stream;
  std::uint32_t threshold;  // of 24 random bits
  float keep;
};

// Drops elements whose memory order is the order of the mask.
void drop_in_order(const Loops& loops, const Mask& mask, const Operands& o) {
  const TypedLoops& typed = loops_of(loops, o.in[0].desc.type);
  parallel_elements(o.in[0].desc, [&](std::int64_t first, std::int64_t n) {
    constexpr std::int64_t most = 4096;
    std::array<std::uint8_t, most / 8> bits{};
    for (std::int64_t done = 0; done < n; done += most) {
      const std::int64_t count = std::min(most, n - done);
      loops.random_below(mask.stream, static_cast<std::uint64_t>(first + done), count,
                         mask.threshold, bits.data());
      typed.select(at(o.in[0], first + done), at(o.out[0], first + done), count, bits.data(),
                   mask.keep);
    }
  });
}

// Gathers the mask of a pixel's channels, since the mask follows the row-major logical shape.
void drop_pixels(const Loops& loops, const Mask& mask, const Operands& o) {
  const TypedLoops& typed = loops_of(loops, o.in[0].desc.type);
  const Place place(o.in[0].desc);
  const std::int64_t channels = o.in[0].desc.shape[1];
  const std::int64_t width = o.in[0].desc.layout == Layout::nhwc ? channels : 16;
  const std::int64_t pixels = place.pixels();
  const auto draws_per_thread = elements_per_thread / 8;  // a draw takes some nanoseconds
  parallel_for(o.in[0].desc.shape[0] * pixels, draws_per_thread / channels + 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t n = i / pixels, p = i % pixels;
                   for (std::int64_t c = 0; c < place.stored_channels(); c += 16) {
                     std::array<std::uint8_t, 2> bits{};
                     const std::int64_t lanes = std::min<std::int64_t>(16, channels - c);
                     for (std::int64_t lane = 0; lane < lanes; ++lane) {
                       const auto index =
                           static_cast<std::uint64_t>((n * channels + c + lane) * pixels + p);
                       const bool kept = (random_bits(mask.stream, index) >> 40) < mask.threshold;
                       bits[static_cast<std::size_t>(lane / 8)] |=
                           static_cast<std::uint8_t>((kept ? 1U : 0U) << (lane % 8));
                     }
                     const std::int64_t stored = width == 16 ? 16 : lanes;
                     typed.select(at(o.in[0], place(n, c, p)), at(o.out[0], place(n, c, p)), stored,
                                  bits.data(), mask.keep);
                   }
                 }
               });
}

bool in_order(const TensorDesc& x) {
  if (x.layout == Layout::nchw) {
    return true;
  }
  const bool one_pixel = x.shape[2] * x.shape[3] == 1;
  return one_pixel && (x.layout == Layout::nhwc || x.shape[1] % 16 == 0);
}

}  // namespace

void add_dropout_rows(KernelTable& table, const Loops& loops) {
  table.add<Dropout>(
      [](const Dropout&, const Signature& request) -> std::optional<KernelSpec> {
        const TensorDesc& x = request.in[0];
        if (!is_vectorised(x.type) || x.layout == Layout::packed) {
          return std::nullopt;
        }
        KernelSpec spec = as_requested(request);
        spec.out[0].layout = x.layout;
        spec.out[0].packing = nullptr;
        return spec;
      },
      [&loops](const Dropout& op, const Signature&) {
        return own_kernel([&loops, op](const Operands& o) {
          const Mask mask(op, o);
          if (in_order(o.in[0].desc)) {
            drop_in_order(loops, mask, o);
          } else {
            drop_pixels(loops, mask, o);
          }
        });
      });
}

}  // namespace cnn::layers::cpu
