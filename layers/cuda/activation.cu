#include "layers/activation.h"
#include "layers/cuda/flat.cuh"
#include "layers/cuda/gate.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"

// Kernels of ReLU, ReLU6 and their gradients. Memory traffic for an image of S bytes: the forward
// pass reads x and writes y, 2 S; the gradient reads dy and y and writes dx, 3 S. Both are minimal.
namespace cnn::layers::cuda {

namespace {

// Writes dx for contiguous operands of n elements; dx may alias dy.
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
      g[i] = gated(g[i], is_open(gate[i], limit));
    }
    store<decltype(width)::value>(dx + at, g);
  });
}

template <class T>
struct GateImages {
  const T* dy = nullptr;
  const T* y = nullptr;
  T* dx = nullptr;                         // contiguous; may alias dy if that is contiguous too
  std::int64_t dy_pitch = 0, y_pitch = 0;  // elements from one pixel to the next
};

// The same for operands with a pitch, whose pixels are separated by channels of other tensors.
template <class T, int width>
__global__ void __launch_bounds__(tile_threads)
    pass_rows_where_open(GateImages<T> images, Tile tile, float limit) {
  if (tile.channel() >= tile.channels) {
    return;
  }
  const int chunk = static_cast<int>(blockIdx.y);
  const std::int64_t end = tile.end_row(chunk);
  const int lines = static_cast<int>(blockDim.y);
  for (std::int64_t row = tile.first_row(chunk) + threadIdx.y; row < end;
       row += rows_in_flight * lines) {
    Pack<T, width> dy[rows_in_flight];
    Pack<T, width> y[rows_in_flight];
#pragma unroll
    for (int k = 0; k < rows_in_flight; ++k) {
      const std::int64_t source = row + k * lines < end ? row + k * lines : row;
      dy[k] = fetch<width>(images.dy + tile.at(source, images.dy_pitch));
      y[k] = fetch<width>(images.y + tile.at(source, images.y_pitch));
    }
#pragma unroll
    for (int k = 0; k < rows_in_flight; ++k) {
      if (row + k * lines < end) {
        float g[width];
        float gate[width];
        widen(dy[k], g);
        widen(y[k], gate);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          g[i] = gated(g[i], is_open(gate[i], limit));
        }
        store<width>(images.dx + tile.at(row + k * lines), g);
      }
    }
  }
}

void run_backward_by_rows(Stream& stream, const Operands& o, float limit) {
  const Tile columns = columns_of(o.out[0].desc);
  with_type_and_width(o.out[0].desc.type, columns.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    const GateImages<T> images{.dy = data_of<const T>(o.in[0]),
                               .y = data_of<const T>(o.in[1]),
                               .dx = data_of<T>(o.out[0]),
                               .dy_pitch = pitch_of(o.in[0].desc),
                               .y_pitch = pitch_of(o.in[1].desc)};
    const auto kernel = pass_rows_where_open<T, decltype(width)::value>;
    const Tile tile = in_one_wave(columns, kernel);
    cnn::cuda::launch(kernel, tile.grid(), tile.block(), 0, stream, images, tile,
                      limit_of_gate(limit));
  });
}

void run_backward(Stream& stream, const Operands& o, float limit) {
  if (o.in[0].desc.pitch > 0 || o.in[1].desc.pitch > 0) {
    return run_backward_by_rows(stream, o, limit);
  }
  with_type(o.in[0].desc.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const std::int64_t n = o.out[0].desc.shape.elements();
    launch_flat(pass_where_open<T>, n / full_width<T>, stream, data_of<const T>(o.in[0]),
                data_of<const T>(o.in[1]), data_of<T>(o.out[0]), n, limit_of_gate(limit));
  });
}

}  // namespace

void add_activation_rows(KernelTable& table) {
  table.add<Relu>([](const Relu&, const Signature& request) { return describe_floats(request); },
                  [](const Relu& op, const Signature&) {
                    return own_kernel([limit = op.limit](Stream& stream, const Operands& o) {
                      with_type(o.in[0].desc.type, [&](auto tag) {
                        using T = typename decltype(tag)::Type;
                        launch_map<T, T>(o.in[0], o.out[0],
                                         Activation{.relu = true, .limit = limit}, stream);
                      });
                    });
                  });
  table.add<ReluBackward>(
      [](const ReluBackward&, const Signature& request) {
        std::optional<KernelSpec> spec = describe_floats(request);
        for (std::size_t i = 0; spec && i < request.in.size(); ++i) {
          keep_pitch(spec->in[i], request.in[i]);
        }
        return spec;
      },
      [](const ReluBackward& op, const Signature&) {
        return own_kernel([limit = op.limit](Stream& stream, const Operands& o) {
          run_backward(stream, o, limit);
        });
      });
}

}  // namespace cnn::layers::cuda
