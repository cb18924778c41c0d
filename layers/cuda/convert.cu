#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/transpose.cuh"
#include "layers/elementwise.h"

// Convert and Normalise: conversions of the element type and between nchw and nhwc. Memory traffic
// is minimal: every element is read once and written once.
namespace cnn::layers::cuda {

namespace {

bool is_plain_or_nhwc(const TensorDesc& desc) {
  return desc.layout == Layout::nchw ||
         (desc.layout == Layout::nhwc && desc.shape.rank() == 4 && desc.pitch == 0);
}

// Returns the request as the spec if both operands are in nchw or contiguous nhwc, else nothing.
std::optional<KernelSpec> describe_as_asked(const Signature& request) {
  if (!is_plain_or_nhwc(request.in[0]) || !is_plain_or_nhwc(request.out[0])) {
    return std::nullopt;
  }
  return KernelSpec{.in = request.in, .out = request.out};
}

void run_convert(Stream& stream, const Operands& o) {
  with_type(o.in[0].desc.type, [&](auto from) {
    with_type(o.out[0].desc.type, [&](auto to) {
      launch_reorder<typename decltype(from)::Type, typename decltype(to)::Type>(
          o.in[0], o.out[0], Identity{}, stream);
    });
  });
}

struct ScaleAndShift {
  float scale, shift;
  __device__ float operator()(float x) const { return fmaf(x, scale, shift); }
};

void run_normalise(Stream& stream, const Operands& o, ScaleAndShift function) {
  with_type(o.out[0].desc.type, [&](auto tag) {
    using To = typename decltype(tag)::Type;
    if (o.in[0].desc.type == DataType::u8) {
      launch_reorder<std::uint8_t, To>(o.in[0], o.out[0], function, stream);
    } else {
      launch_reorder<float, To>(o.in[0], o.out[0], function, stream);
    }
  });
}

}  // namespace

void add_convert_rows(KernelTable& table) {
  table.add<Convert>(
      [](const Convert&, const Signature& request) { return describe_as_asked(request); },
      [](const Convert&, const Signature&) { return own_kernel(run_convert); });
  table.add<Normalise>(
      [](const Normalise&, const Signature& request) {
        std::optional<KernelSpec> spec = describe_as_asked(request);
        if (spec) {
          spec->out = in_nhwc(request).out;
        }
        return spec;
      },
      [](const Normalise& op, const Signature&) {
        return own_kernel(
            [function = ScaleAndShift{op.scale, op.shift}](Stream& stream, const Operands& o) {
              run_normalise(stream, o, function);
            });
      });
}

}  // namespace cnn::layers::cuda
