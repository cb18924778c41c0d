#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "layers/cpu/rows.h"
#include "layers/dense.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {
namespace {

using layers::Dense;

constexpr std::int64_t inputs = 4099;  // no multiple of the eight sums that run side by side

KernelTable narrow_dense() {
  KernelTable table;
  layers::cpu::add_narrow_dense_rows(table);
  return table;
}

bool serves(std::int64_t of_inputs, std::int64_t outputs) {
  return narrow_dense()
      .describe(Dense({}), {.in = {{.shape = {2, of_inputs}}, {.shape = {of_inputs, outputs}}},
                            .out = {{.shape = {2, outputs}}}})
      .has_value();
}

// Returns relu(x w + bias) for one example.
std::vector<float> dense(const std::vector<float>& x, const std::vector<float>& w,
                         const std::vector<float>& bias) {
  const auto outputs = static_cast<std::int64_t>(bias.size());
  const Signature signature{
      .in = {{.shape = {1, inputs}}, {.shape = {inputs, outputs}}, {.shape = {outputs}}},
      .out = {{.shape = {1, outputs}}}};
  HostTensor on_x(signature.in[0]), on_w(signature.in[1]), on_bias(signature.in[2]);
  HostTensor y(signature.out[0]);
  std::copy(x.begin(), x.end(), on_x.view().as<float>().begin());
  std::copy(w.begin(), w.end(), on_w.view().as<float>().begin());
  std::copy(bias.begin(), bias.end(), on_bias.view().as<float>().begin());
  ImmediateStream stream;
  narrow_dense()
      .make(Dense({.bias = true, .relu = true}), signature)
      ->run(stream,
            {.in = {on_x.view(), on_w.view(), on_bias.view()}, .out = {y.view()}, .workspace = {}});
  const auto result = y.view().as<float>();
  return {result.begin(), result.end()};
}

TEST(NarrowDense, ServesFewOutputsOfManyInputs) {
  EXPECT_TRUE(serves(4096, 1));
  EXPECT_TRUE(serves(154587, 4));
  EXPECT_FALSE(serves(4096, 5));
  EXPECT_FALSE(serves(4095, 1));
}

// In f32 the ones would be lost beside 2^24.
TEST(NarrowDense, SumsInDouble) {
  std::vector<float> x(inputs, 1), w(inputs, 1);
  x.front() = 0x1p24F;
  w.back() = -0x1p24F;
  EXPECT_EQ(dense(x, w, {0}), (std::vector<float>{static_cast<float>(inputs - 2)}));
}

TEST(NarrowDense, AddsABiasToEachOutputAndClipsBelowZero) {
  std::vector<float> w;
  for (std::int64_t i = 0; i < inputs; ++i) {
    w.insert(w.end(), {1, -1, 0});
  }
  EXPECT_EQ(dense(std::vector<float>(inputs, 2), w, {0.5F, 1, 0.25F}),
            (std::vector<float>{2 * static_cast<float>(inputs) + 0.5F, 0, 0.25F}));
}

}  // namespace
}  // namespace cnn::tests
