#include "layers/cuda/flat.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/elementwise.h"

// Add, Scale and Fill. Memory traffic is minimal: every operand is read once and the result is
// written once.
namespace cnn::layers::cuda {

namespace {

// The most operands of one Add: their addresses must fit the 4 KB of kernel parameters. No model
// adds as many.
constexpr int max_terms = 128;

template <class T, int capacity>
struct Terms {
  const T* x[capacity];
  int count;
};

// Writes y = relu(x0 + x1 + ...), summed in f32 in the order of the operands; y may alias any of
// them. A capacity below max_terms is the exact number of terms, so that the loop unrolls.
template <class T, int capacity>
__global__ void __launch_bounds__(flat_threads)
    add_terms(Terms<T, capacity> terms, T* y, std::int64_t n, bool relu) {
  const int count = capacity < max_terms ? capacity : terms.count;
  each_pack<full_width<T>>(n, [&](std::int64_t at, auto width) {
    float sum[decltype(width)::value];
    load<decltype(width)::value>(terms.x[0] + at, sum);
#pragma unroll 4
    for (int k = 1; k < count; ++k) {
      float term[decltype(width)::value];
      load<decltype(width)::value>(terms.x[k] + at, term);
#pragma unroll
      for (int i = 0; i < decltype(width)::value; ++i) {
        sum[i] += term[i];
      }
    }
#pragma unroll
    for (float& value : sum) {
      value = relu && value < 0 ? 0 : value;  // unlike fmaxf, keeps a NaN
    }
    store<decltype(width)::value>(y + at, sum);
  });
}

template <class T, int capacity>
void launch_add(Stream& stream, const Operands& o, bool relu) {
  Terms<T, capacity> terms{};
  terms.count = static_cast<int>(o.in.size());
  for (std::size_t i = 0; i < o.in.size(); ++i) {
    terms.x[i] = data_of<const T>(o.in[i]);
  }
  const std::int64_t n = o.out[0].desc.shape.elements();
  launch_flat(add_terms<T, capacity>, n / full_width<T>, stream, terms, data_of<T>(o.out[0]), n,
              relu);
}

void run_add(Stream& stream, const Operands& o, bool relu) {
  with_type(o.out[0].desc.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    switch (o.in.size()) {
      case 2:
        return launch_add<T, 2>(stream, o, relu);
      case 3:
        return launch_add<T, 3>(stream, o, relu);
      default:
        return launch_add<T, max_terms>(stream, o, relu);
    }
  });
}

struct Times {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};

template <class T>
__global__ void __launch_bounds__(flat_threads) fill_elements(T* y, std::int64_t n, float value) {
  each_pack<full_width<T>>(n, [&](std::int64_t at, auto width) {
    float values[decltype(width)::value];
#pragma unroll
    for (float& element : values) {
      element = value;
    }
    store<decltype(width)::value>(y + at, values);
  });
}

void run_fill(Stream& stream, const TensorView& y, float value) {
  with_type(y.desc.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const std::int64_t n = y.desc.shape.elements();
    launch_flat(fill_elements<T>, n / full_width<T>, stream, data_of<T>(y), n, value);
  });
}

}  // namespace

void add_elementwise_rows(KernelTable& table) {
  table.add<Add>(
      [](const Add&, const Signature& request) {
        return request.in.size() <= max_terms ? describe_floats(request) : std::nullopt;
      },
      [](const Add& op, const Signature&) {
        return own_kernel(
            [relu = op.relu](Stream& stream, const Operands& o) { run_add(stream, o, relu); });
      });
  table.add<Scale>([](const Scale&, const Signature& request) { return describe_floats(request); },
                   [](const Scale& op, const Signature&) {
                     return own_kernel([factor = op.factor](Stream& stream, const Operands& o) {
                       with_type(o.in[0].desc.type, [&](auto tag) {
                         using T = typename decltype(tag)::Type;
                         launch_map<T, T>(o.in[0], o.out[0], Times{factor}, stream);
                       });
                     });
                   });
  table.add<Fill>([](const Fill&, const Signature& request) { return describe_floats(request); },
                  [](const Fill& op, const Signature&) {
                    return own_kernel([value = op.value](Stream& stream, const Operands& o) {
                      run_fill(stream, o.out[0], value);
                    });
                  });
}

}  // namespace cnn::layers::cuda
