#pragma once

#include <array>
#include <cstdint>

#include "layers/cpu/simd/bf16_gradient.h"
#include "layers/cpu/simd/few_channels.h"
#include "layers/cpu/simd/pointwise.h"
#include "layers/cpu/simd/winograd.h"

// The inner loops of our own kernels, one table per instruction set. The interface has plain
// pointers only, and variants share no code: the linker would merge an inline function compiled for
// two instruction sets into either of them.
//
// Matrices are pixels x channels, row-major without gaps: a piece of an nhwc tensor (columns = C),
// or of one channel block of nchw16c (columns = 16). Loops run on the calling thread and are pure
// functions of their arguments. Inputs and outputs are either the same array or do not overlap.
namespace cnn::layers::cpu {

// One bit for each element of a matrix, set if the ReLU's gate is open: row r and column c have bit
// c % 8 of data[r * row + c / 8 * byte], where c / 8 < bytes; unused bits of the last byte are
// zero.
struct GateBits {
  std::uint8_t* data = nullptr;
  std::int64_t row = 0, byte = 0, bytes = 0;
};

// A normalised activation:
//   y = min(relu?((x - mean) * (scale + scale_rest) + shift + residual?), limit)
// The rounding error of a factor would be equal at every pixel of its channel, and deep networks
// amplify it; scale_rest corrects it at no cost, since memory limits the loop.
struct NormaliseRows {
  const void* x = nullptr;
  const void* residual = nullptr;  // null: no residual
  void* y = nullptr;
  const float *mean = nullptr, *scale = nullptr, *scale_rest = nullptr,
              *shift = nullptr;  // [columns]
  std::int64_t rows = 0, columns = 0;
  bool relu = false;
  float limit = __builtin_inff();
  GateBits mask;        // with a residual and a ReLU: output, unless its data is null
  bool stream = false;  // non-temporal stores: y is large and overwrites no operand
};

// The gate of a normalised activation's gradient: always open, recomputed from x (layers/gate.h)
// without or with an upper limit, read from the output y, or read from a mask. A closed gate yields
// 0 x dy.
enum class Gate : std::uint8_t { open, recomputed, recomputed_with_limit, output, mask };

struct NormaliseGradientRows {
  const void *x = nullptr, *dy = nullptr;
  const void* dy2 = nullptr;  // null: none; else added to dy
  const void* y = nullptr;    // Gate::output
  GateBits mask;              // Gate::mask
  void* g = nullptr;          // Gate::output and mask: gradient_sums writes the gated dy here
  void* dx = nullptr;
  const float *mean = nullptr, *scale = nullptr, *scale_rest = nullptr,
              *shift = nullptr;                     // as in the forward pass
  const float *slope = nullptr, *offset = nullptr;  // dx = scale g + slope (x - mean) + offset
  std::int64_t rows = 0, columns = 0;
  Gate gate = Gate::open;
  float limit = __builtin_inff();  // Gate::recomputed_with_limit
  bool stream = false;             // non-temporal stores: g of gradient_sums, dx of gradient
};

// Running moments of each column over `count` rows. scratch: 3 x columns floats.
struct Moments {
  double* mean = nullptr;
  double* squares = nullptr;  // sum of (x - mean)^2
  float* scratch = nullptr;
  double count = 0;
};

// y = relu?(x[0] + x[1] + ...), n elements each.
struct AddArrays {
  const void* const* x = nullptr;
  std::int64_t inputs = 0;
  void* y = nullptr;
  std::int64_t n = 0;
  bool relu = false;
  bool stream = false;  // non-temporal stores
};

// Loops over one element type; void pointers refer to f32, or to bf16 as 16-bit words. n: elements.
struct TypedLoops {
  void (*relu)(const void* x, void* y, std::int64_t n, float limit);
  void (*relu_backward)(const void* dy, const void* y, void* dx, std::int64_t n, float limit);
  void (*add)(const AddArrays& arrays);
  void (*scale)(const void* x, void* y, std::int64_t n, float factor);
  void (*fill)(void* y, std::int64_t n, float value);
  void (*affine_f32)(const float* x, void* y, std::int64_t n, const float* scale_and_shift);
  void (*affine_u8)(const std::uint8_t* x, void* y, std::int64_t n, const float* scale_and_shift);
  // y = bit i % 8 of keep[i / 8] ? x / divisor : 0 x.
  void (*select)(const void* x, void* y, std::int64_t n, const std::uint8_t* keep, float divisor);

  // Adds the rows of x to the moments; sums[c] += sum of column c.
  void (*moments)(const void* x, std::int64_t rows, std::int64_t columns, Moments& moments);
  void (*column_sums)(const void* x, std::int64_t rows, std::int64_t columns, float* sums);
  void (*normalise)(const NormaliseRows& rows);
  // sums[0..columns) += sum of g, sums[columns..2 columns) += sum of g (x - mean). scratch: 2 x
  // columns floats.
  void (*gradient_sums)(const NormaliseGradientRows& rows, double* sums, float* scratch);
  void (*gradient)(const NormaliseGradientRows& rows);
  // Fills each row of y with values[columns].
  void (*repeat)(const float* values, void* y, std::int64_t rows, std::int64_t columns);
  // Move pixels between an image and the operands of pointwise_product or pointwise_gradient.
  void (*gather)(const GatherPixels& pixels);
  void (*scatter)(const ScatterPixels& pixels);
};

// One piece of a parameter with its gradient and slots, updated in place.
struct UpdatePiece {
  float* w = nullptr;
  const float* g = nullptr;
  float *slot0 = nullptr, *slot1 = nullptr;
  std::int64_t n = 0;
};
struct UpdateFactors {         // see layers/optimizer.h for the formulas
  float rate = 0;              // learning rate; for Adam with the bias correction
  float unscale = 1;           // 1 / loss scale
  float decay = 0;             // weight decay of this parameter, or 0
  float clip = 0;              // infinity: no clipping
  float momentum = 0;          // momentum, rmsprop
  float keep0 = 0, keep1 = 0;  // decay of slot 0 and 1: rmsprop, adam
  float take0 = 0, take1 = 0;  // 1 - decay, from double: 1 - 0.999 in f32 is off by 1e-5
  float epsilon = 0;
};

struct Loops {
  const char* name;  // "avx2", "avx512", "avx512_bf16", "avx512_fp16"
  TypedLoops f32, bf16;
  std::array<WinogradLoops, winograd_form_count> winograd;  // one per entry of winograd_forms
  void (*pointwise_gradient)(const PointwiseGradient& gradient);
  void (*pointwise_product)(const PointwiseProduct& product);
  std::int64_t pointwise_pixels = 0;  // that a call of pointwise_product should have
  void (*few_channels_gradient)(const FewChannelsGradient& gradient);
  Bf16GradientFunctions bf16_gradient;
  // The four update rules return the sum of squares of w before the update.
  double (*sgd)(const UpdatePiece& piece, const UpdateFactors& by);
  double (*momentum)(const UpdatePiece& piece, const UpdateFactors& by);
  double (*rmsprop)(const UpdatePiece& piece, const UpdateFactors& by);
  double (*adam)(const UpdatePiece& piece, const UpdateFactors& by);
  double (*sum_of_squares)(const float* x, std::int64_t n);
  bool (*all_finite)(const float* x, std::int64_t n);
  // Sets bit i % 8 of keep[i / 8] if 24 random bits of counter first + i of the stream are below
  // threshold.
  void (*random_below)(std::uint64_t stream, std::uint64_t first, std::int64_t n,
                       std::uint32_t threshold, std::uint8_t* keep);
};

const Loops& avx2_loops();         // require a processor with AVX2, FMA and F16C
const Loops& avx512_loops();       // require a processor with AVX-512 F, BW, DQ, VL
const Loops& avx512_bf16_loops();  // require AVX512_BF16, too
const Loops& avx512_fp16_loops();  // the same, for processors that have AVX512_FP16, too

}  // namespace cnn::layers::cpu
