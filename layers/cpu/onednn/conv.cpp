#include "layers/conv.h"

#include "layers/cpu/onednn/batch_parts.h"
#include "layers/cpu/onednn/conv_plans.h"
#include "layers/cpu/onednn/own_gradients.h"
#include "layers/cpu/onednn/products.h"
#include "layers/cpu/onednn/tile_conv_rows.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {
namespace {

// The pixels of an image from which on our kernel is faster than oneDNN's. Measured on ResNet-50's
// layers on a Zen 4: 5 to 10 % faster on images of 28 x 28 pixels and more, slower on smaller ones.
constexpr std::int64_t min_pixels_of_pointwise = 400;

// Returns whether products of bf16 pairs by vectors are the fastest of the processor.
bool has_bf16_gradients(const Isa& isa) {
  return isa.avx512_bf16 && multiplies_bf16_fast(isa) && !isa.amx_bf16;
}

// Returns whether products of bf16 images are computed in f32.
bool widens_bf16(const Isa& isa) { return computes_bf16(isa) && !multiplies_bf16_fast(isa); }

constexpr ProductImages f32_blocks{.layout = Layout::nchw16c};
constexpr ProductImages bf16_blocks{.type = DataType::bf16, .layout = Layout::nchw16c};
// Fewer channels were not measured.
constexpr ProductRule widened_product_rule{.min_channels = 32};

template <class O>
void add_direct_row(KernelTable& table, const Isa& isa) {
  add_primitive<O>(table, isa, [](const O& op, const Signature& s, const Target& target) {
    return plan_in_parts(op, s,
                         [&](const Signature& images) { return plan_conv(op, images, target); });
  });
}

void add_direct_rows(KernelTable& table, const Isa& isa) {
  add_direct_row<Conv2d>(table, isa);
  add_direct_row<Conv2dBackwardData>(table, isa);
  add_direct_row<Conv2dBackwardWeights>(table, isa);
}

}  // namespace

void add_conv_rows(KernelTable& table, const Isa& isa) {
  if (isa.avx512) {
    add_pointwise_row(table, isa, min_pixels_of_pointwise);
    add_product_conv_rows(table, isa, reducing_product_rule, f32_blocks);
  } else if (isa.avx2) {
    add_few_channels_row(table, isa);
    add_product_rows(table, isa, measured_product_rule);
  }
  if (widens_bf16(isa)) {
    add_product_rows(table, isa, widened_product_rule, bf16_blocks);
  }
  if (has_bf16_gradients(isa)) {
    add_bf16_gradient_row(table, isa);
  }
  if (isa.amx_bf16) {
    add_strided_tile_row(table, isa);
    add_tile_gradient_row(table, isa);
    add_tile_lines_row(table, isa);
  }
  add_direct_rows(table, isa);
}

std::vector<ConvCandidateRows> library_conv_candidates(const Isa& isa) {
  std::vector<ConvCandidateRows> kinds;
  add_direct_rows(
      kinds.emplace_back(ConvCandidateRows{.name = "onednn", .has_layouts = true}).table, isa);
  if (isa.avx512) {
    add_pointwise_row(kinds.emplace_back(ConvCandidateRows{.name = "pointwise"}).table, isa, 1);
    add_product_conv_rows(kinds.emplace_back(ConvCandidateRows{.name = "blocked products"}).table,
                          isa, {}, f32_blocks);
  }
  if (isa.avx2) {
    add_product_rows(kinds.emplace_back(ConvCandidateRows{.name = "products"}).table, isa, {});
    add_few_channels_row(kinds.emplace_back(ConvCandidateRows{.name = "few channels"}).table, isa);
  }
  if (widens_bf16(isa)) {
    add_product_rows(kinds.emplace_back(ConvCandidateRows{.name = "widened products"}).table, isa,
                     {}, bf16_blocks);
  }
  if (has_bf16_gradients(isa)) {
    add_bf16_gradient_row(kinds.emplace_back(ConvCandidateRows{.name = "bf16 pairs"}).table, isa);
  }
  if (isa.amx_bf16) {
    KernelTable& tiles = kinds.emplace_back(ConvCandidateRows{.name = "bf16 tiles"}).table;
    add_tile_gradient_row(tiles, isa);
    add_tile_lines_row(tiles, isa);
    add_tile_conv_rows(tiles, isa);
  }
  return kinds;
}

}  // namespace cnn::layers::cpu
