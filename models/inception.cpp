// Szegedy et al., 2015 (v3) and 2016 (v4). All modules of a kind share a scope that ends in 0, for
// compatibility with existing checkpoints.
#include <optional>

#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/dropout.h"
#include "layers/pool.h"
#include "models/networks.h"

namespace cnn::models {

using layers::concat;
using layers::Padding;

namespace {

// A convolution without bias, a batch norm without gamma, and a ReLU.
Value unit(Value x, std::int64_t filters, std::int64_t height = 1, std::int64_t width = 1) {
  return layers::conv_bn(x, {.filters = filters, .kernel_h = height, .kernel_w = width}, {});
}

Value valid3x3(Value x, std::int64_t filters, std::int64_t stride) {
  return layers::conv_bn(
      x, {.filters = filters, .kernel = 3, .stride = stride, .padding = Padding::valid}, {});
}

Value halve(Value x) { return layers::max_pool(x, {.kernel = 3}); }

Value average(Value x) {
  return layers::average_pool(x, {.kernel = 3, .stride = 1, .padding = Padding::same});
}

Value module3_a(Value x, std::int64_t pooled) {
  const NameScope scope(*x.graph, "incept_v3_a0");
  const Value a = unit(x, 64);
  const Value b = unit(unit(x, 48), 64, 5, 5);
  const Value c = unit(unit(unit(x, 64), 96, 3, 3), 96, 3, 3);
  return concat({{a, b, c, unit(average(x), pooled)}});
}

Value module3_b(Value x) {
  const NameScope scope(*x.graph, "incept_v3_b0");
  const Value a = valid3x3(x, 384, 2);
  const Value b = valid3x3(unit(unit(x, 64), 96, 3, 3), 96, 2);
  return concat({{a, b, halve(x)}});
}

Value module3_c(Value x, std::int64_t n) {
  const NameScope scope(*x.graph, "incept_v3_c0");
  const Value a = unit(x, 192);
  const Value b = unit(unit(unit(x, n), n, 1, 7), 192, 7, 1);
  Value c = unit(unit(unit(x, n), n, 7, 1), n, 1, 7);
  c = unit(unit(c, n, 7, 1), 192, 1, 7);
  return concat({{a, b, c, unit(average(x), 192)}});
}

Value module3_d(Value x) {
  const NameScope scope(*x.graph, "incept_v3_d0");
  const Value a = valid3x3(unit(x, 192), 320, 2);
  const Value b = valid3x3(unit(unit(unit(x, 192), 192, 1, 7), 192, 7, 1), 192, 2);
  return concat({{a, b, halve(x)}});
}

Value module3_e(Value x, bool max) {
  const NameScope scope(*x.graph, "incept_v3_e0");
  const Value a = unit(x, 320);
  const Value b = unit(x, 384);
  const Value b1 = unit(b, 384, 1, 3);
  const Value b2 = unit(b, 384, 3, 1);
  const Value c = unit(unit(x, 448), 384, 3, 3);
  const Value c1 = unit(c, 384, 1, 3);
  const Value c2 = unit(c, 384, 3, 1);
  const Value pooled =
      max ? layers::max_pool(x, {.kernel = 3, .stride = 1, .padding = Padding::same}) : average(x);
  return concat({{a, b1, b2, c1, c2, unit(pooled, 192)}});
}

Value stem4_a(Value x) {
  const NameScope scope(*x.graph, "incept_v4_sa0");
  return concat({{halve(x), valid3x3(x, 96, 2)}});
}

Value stem4_b(Value x) {
  const NameScope scope(*x.graph, "incept_v4_sb0");
  const Value a = valid3x3(unit(x, 64), 96, 1);
  const Value b = valid3x3(unit(unit(unit(x, 64), 64, 7, 1), 64, 1, 7), 96, 1);
  return concat({{a, b}});
}

Value stem4_c(Value x) {
  const NameScope scope(*x.graph, "incept_v4_sc0");
  const Value a = valid3x3(x, 192, 2);
  return concat({{a, halve(x)}});
}

Value module4_a(Value x) {
  const NameScope scope(*x.graph, "incept_v4_a0");
  const Value a = unit(average(x), 96);
  const Value b = unit(x, 96);
  const Value c = unit(unit(x, 64), 96, 3, 3);
  const Value d = unit(unit(unit(x, 64), 96, 3, 3), 96, 3, 3);
  return concat({{a, b, c, d}});
}

Value reduce4_a(Value x) {
  const NameScope scope(*x.graph, "incept_v4_ra0");
  const Value b = valid3x3(x, 384, 2);
  const Value c = valid3x3(unit(unit(x, 192), 224, 3, 3), 256, 2);
  return concat({{halve(x), b, c}});
}

Value module4_b(Value x) {
  const NameScope scope(*x.graph, "incept_v4_b0");
  const Value a = unit(average(x), 128);
  const Value b = unit(x, 384);
  const Value c = unit(unit(unit(x, 192), 224, 1, 7), 256, 7, 1);
  Value d = unit(unit(unit(x, 192), 192, 1, 7), 224, 7, 1);
  d = unit(unit(d, 224, 1, 7), 256, 7, 1);
  return concat({{a, b, c, d}});
}

Value reduce4_b(Value x) {
  const NameScope scope(*x.graph, "incept_v4_rb0");
  const Value b = valid3x3(unit(x, 192), 192, 2);
  const Value c = valid3x3(unit(unit(unit(x, 256), 256, 1, 7), 320, 7, 1), 320, 2);
  return concat({{halve(x), b, c}});
}

Value module4_c(Value x) {
  const NameScope scope(*x.graph, "incept_v4_c0");
  const Value a = unit(average(x), 256);
  const Value b = unit(x, 256);
  const Value c = unit(x, 384);
  const Value c1 = unit(c, 256, 1, 3);
  const Value c2 = unit(c, 256, 3, 1);
  const Value d = unit(unit(unit(x, 384), 448, 1, 3), 512, 3, 1);
  const Value d1 = unit(d, 256, 3, 1);
  const Value d2 = unit(d, 256, 1, 3);
  return concat({{a, b, c1, c2, d1, d2}});
}

Value repeat(Value x, int times, Value (*module)(Value)) {
  for (int i = 0; i < times; ++i) {
    x = module(x);
  }
  return x;
}

// The three convolutions that both networks begin with.
Value first_layers(Value images) {
  return unit(valid3x3(valid3x3(images, 32, 2), 32, 1), 64, 3, 3);
}

// Returns the second classifier's features, from the last map of 17 x 17.
Value auxiliary3(Value x) {
  Value y = layers::average_pool(x, {.kernel = 5, .stride = 3});
  y = unit(y, 128);
  y = layers::conv_bn(y, {.filters = 768, .kernel = 5, .padding = Padding::valid, .stddev = 0.01},
                      {});
  return layers::spatial_mean(y);
}

// auxiliary: receives the second classifier's features unless it is null.
Value build3(Value images, std::optional<Value>* auxiliary) {
  Value x = halve(first_layers(images));
  x = halve(valid3x3(unit(x, 80), 192, 1));
  for (const int pooled : {32, 64, 64}) {
    x = module3_a(x, pooled);
  }
  x = module3_b(x);
  for (const int width : {128, 160, 160, 192}) {
    x = module3_c(x, width);
  }
  if (auxiliary != nullptr) {
    *auxiliary = auxiliary3(x);
  }
  x = module3_e(module3_d(x), false);
  return layers::spatial_mean(module3_e(x, true));
}

}  // namespace

Value inception3(Value images) { return build3(images, nullptr); }

TwoHeads inception3_with_auxiliary_head(Value images) {
  std::optional<Value> auxiliary;
  const Value features = build3(images, &auxiliary);
  return {features, auxiliary.value()};
}

Value inception4(Value images) {
  Value x = stem4_c(stem4_b(stem4_a(first_layers(images))));
  x = reduce4_a(repeat(x, 4, module4_a));
  x = reduce4_b(repeat(x, 7, module4_b));
  x = layers::spatial_mean(repeat(x, 3, module4_c));
  return layers::dropout(x, 0.8);
}

}  // namespace cnn::models
