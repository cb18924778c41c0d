#pragma once

#include <cstdint>

#include "layers/cpu/simd/bf16_gradient.h"

// The loops of weight gradients from bf16 images, as templates of the vector type V.
namespace cnn::layers::cpu {

template <class V>
class Bf16GradientLoops {
 public:
  static void pack(const Bf16PackRows& rows) {
    const std::int64_t pairs = rows.pairs(), step = 2 * rows.column_stride;
    // The pairs whose pixels both exist.
    const std::int64_t left = rows.first_column < 0 ? (-rows.first_column + step - 1) / step : 0;
    const std::int64_t begin = left < pairs ? left : pairs;
    const std::int64_t last = existing_pixels(rows) / 2;
    const std::int64_t end = last > begin ? last : begin;
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      const std::int64_t number = rows.first_row + r * rows.row_stride;
      std::uint16_t* const to = rows.to + r * pairs * words_of_pair;
      if (number < 0 || number >= rows.height) {
        for (std::int64_t pair = 0; pair < pairs; ++pair) {
          V::store_pairs(to + pair * words_of_pair, V::zip(nullptr, nullptr));
        }
        continue;
      }
      const std::uint16_t* const row = rows.image + number * rows.width * gradient_block;
      pack_edge(rows, row, 0, begin, to);
      const std::uint16_t* from = row + (rows.first_column + begin * step) * gradient_block;
      const std::int64_t second = rows.column_stride * gradient_block;
      for (std::int64_t pair = begin; pair < end; ++pair) {
        V::store_pairs(to + pair * words_of_pair, V::zip_existing(from, from + second));
        from += 2 * second;
      }
      pack_edge(rows, row, end, pairs, to);
    }
  }

  // Takes the outputs by two blocks, whose packed rows stay in the first-level cache while those of
  // all inputs pass.
  static void multiply(const Bf16Gradient& gradient) {
    for (std::int64_t out = 0; out < gradient.out_blocks; out += 2) {
      const auto kernel = gradient.out_blocks - out > 1 ? multiply_rows<2> : multiply_rows<1>;
      for (std::int64_t in = 0; in < gradient.in_blocks; ++in) {
        multiply_taps(gradient, out, in, kernel);
      }
    }
  }

 private:
  using Float = typename V::Float;
  using Pairs = typename V::Pairs;
  using All = typename V::All;
  static constexpr int together = 8;  // inputs whose sums of two vectors fit the registers

  // One tap of eight inputs and one or two blocks of outputs.
  struct Product {
    const std::uint16_t *x, *dy;
    std::int64_t dy_block;        // from one block of outputs to the next, in words
    std::int64_t x_row, x_image;  // from the end of a row of pairs to the next, and of an image
    std::int64_t x_next;          // to the rows that the next tap reads, which are prefetched
    float* sums;
  };
  using Kernel = void (*)(const Bf16Gradient& gradient, const Product& product);

  // The pixels of a row that do not lie right of the image.
  static std::int64_t existing_pixels(const Bf16PackRows& rows) {
    const std::int64_t room = rows.width - rows.first_column;
    const std::int64_t count = room <= 0 ? 0 : (room - 1) / rows.column_stride + 1;
    return count < rows.pixels ? count : rows.pixels;
  }

  static const std::uint16_t* pixel(const Bf16PackRows& rows, const std::uint16_t* row,
                                    std::int64_t number) {
    const std::int64_t column = rows.first_column + number * rows.column_stride;
    const bool exists = column >= 0 && column < rows.width && number < rows.pixels;
    return exists ? row + column * gradient_block : nullptr;
  }

  static void pack_edge(const Bf16PackRows& rows, const std::uint16_t* row, std::int64_t begin,
                        std::int64_t end, std::uint16_t* to) {
    for (std::int64_t pair = begin; pair < end; ++pair) {
      V::store_pairs(to + pair * words_of_pair,
                     V::zip(pixel(rows, row, 2 * pair), pixel(rows, row, 2 * pair + 1)));
    }
  }

  static void multiply_taps(const Bf16Gradient& gradient, std::int64_t out, std::int64_t in,
                            Kernel kernel) {
    const std::int64_t row = gradient.pairs * words_of_pair;
    const std::int64_t dy_block = gradient.images * gradient.rows * row;
    const std::int64_t x_plane = gradient.images * gradient.x_rows * row;
    const std::int64_t taps = gradient.kernel_h * gradient.kernel_w;
    Product product{.x = nullptr,
                    .dy = gradient.dy + out * dy_block,
                    .dy_block = dy_block,
                    .x_row = (gradient.x_step - 1) * row,
                    .x_image = (gradient.x_rows - gradient.rows * gradient.x_step) * row,
                    .x_next = x_plane,
                    .sums = nullptr};
    for (std::int64_t i = 0; i < taps; ++i) {  // those of a column share most rows of x
      const std::int64_t h = i % gradient.kernel_h, w = i / gradient.kernel_h;
      const std::int64_t tap = in * taps + h * gradient.kernel_w + w;
      const std::uint16_t* const x = gradient.x + (in * gradient.kernel_w + w) * x_plane + h * row;
      float* const sums = gradient.sums + out * gradient.sums_of_out_block + tap * gradient_tile;
      for (std::int64_t first = 0; first < gradient_block; first += together) {
        product.x = x + first * 2;
        product.sums = sums + first * gradient_block;
        kernel(gradient, product);
      }
    }
  }

  template <int vectors>
  static void multiply_rows(const Bf16Gradient& gradient, const Product& product) {
    Float sums[together * vectors];
#pragma GCC unroll 16
    for (int i = 0; i < together * vectors; ++i) {
      sums[i] = V::zero();
    }
    const std::uint16_t* x = product.x;
    const std::uint16_t* dy = product.dy;
    const std::int64_t dy_block = product.dy_block, x_next = product.x_next;
    for (std::int64_t image = 0; image < gradient.images; ++image) {
      for (std::int64_t row = 0; row < gradient.rows; ++row) {
        for (std::int64_t pair = gradient.pairs; pair > 0; --pair) {
          __builtin_prefetch(x + x_next);
          Pairs factors[vectors];
#pragma GCC unroll 2
          for (int v = 0; v < vectors; ++v) {
            factors[v] = V::load_pairs(dy + v * dy_block);
          }
#pragma GCC unroll 8
          for (int i = 0; i < together; ++i) {
            const Pairs input = V::repeat_pair(x + std::int64_t{2} * i);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) {
              sums[i * vectors + v] = V::dot(sums[i * vectors + v], factors[v], input);
            }
          }
          x += words_of_pair;
          dy += words_of_pair;
        }
        x += product.x_row;
      }
      x += product.x_image;
    }
    float* to[2] = {product.sums, product.sums + gradient.sums_of_out_block};
    const bool add = gradient.add;
#pragma GCC unroll 16
    for (int i = 0; i < together * vectors; ++i) {
      float* const at = to[i % vectors] + i / vectors * gradient_block;
      V::store(at, add ? sums[i] + V::load(at, All{}) : sums[i], All{});
    }
  }
};

}  // namespace cnn::layers::cpu
