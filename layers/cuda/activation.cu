#include "layers/activation.h"
#include "layers/cuda/flat.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"

// Bytes: Relu reads x and writes y, 2 S; its gradient reads dy and y and writes dx, 3 S: the
// floors.
namespace cnn::layers::cuda {

namespace {

// Written so that a NaN stays one.
struct Clamp {
  float limit;
  __device__ float operator()(float x) const {
    const float positive = x < 0 ? 0 : x;
    return positive > limit ? limit : positive;
  }
};

// dx may be dy.
template <class T>
__global__ void __launch_bounds__(flat_threads)
    pass_where_open(const T* dy, const T* y, T* dx, std::int64_t n, float limit) {
  each_pack<full_width<T>>(n, [&](std::int64_t at, auto width) {
    float g[decltype(width)::value];
    float gate[decltype(width)::value];
    load<decltype(width)::value>(dy + at, g);
    load<decltype(width)::value>(y + at, gate);
#pragma unroll
    for (int i = 0; i < decltype(width)::value; ++i) {
      g[i] = gate[i] > 0 && gate[i] < limit ? g[i] : 0;
    }
    store<decltype(width)::value>(dx + at, g);
  });
}

void run_backward(Stream& stream, const Operands& o, float limit) {
  with_type(o.in[0].desc.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const std::int64_t n = o.out[0].desc.shape.elements();
    cnn::cuda::launch(pass_where_open<T>, flat_grid(n / full_width<T>), flat_threads, 0, stream,
                      data_of<const T>(o.in[0]), data_of<const T>(o.in[1]), data_of<T>(o.out[0]), n,
                      limit);
  });
}

}  // namespace

void add_activation_rows(KernelTable& table) {
  table.add<Relu>([](const Relu&, const Signature& asked) { return describe_floats(asked); },
                  [](const Relu& op, const Signature&) {
                    return own_kernel([limit = op.limit](Stream& stream, const Operands& o) {
                      with_type(o.in[0].desc.type, [&](auto tag) {
                        using T = typename decltype(tag)::Type;
                        launch_map<T, T>(o.in[0], o.out[0], Clamp{limit}, stream);
                      });
                    });
                  });
  table.add<ReluBackward>(
      [](const ReluBackward&, const Signature& asked) { return describe_floats(asked); },
      [](const ReluBackward& op, const Signature&) {
        return own_kernel([limit = op.limit](Stream& stream, const Operands& o) {
          run_backward(stream, o, limit);
        });
      });
}

}  // namespace cnn::layers::cuda
