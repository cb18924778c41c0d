#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/graph.h"
#include "runtime/op.h"

// Small ops for test programs whose results need no meaning.
namespace cnn::tests {

struct TestOpOptions {
  Lane lane = Lane::compute;
  bool in_place = false;  // may overwrite input 0
};

class TestOp : public Op {
 public:
  explicit TestOp(TestOpOptions options) : options_(options) {}
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override {
    return {in.front()};
  }
  Lane lane() const override { return options_.lane; }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return options_.in_place && input == 0 && output == 0;
  }

 private:
  TestOpOptions options_;
};

// Computes out = factor * in + 1.
class Scale final : public TestOp {
 public:
  explicit Scale(float factor, TestOpOptions options = {}) : TestOp(options), factor_(factor) {}
  std::string_view name() const override { return "scale"; }
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override {
    const auto from = in[0].as<float>();
    std::transform(from.begin(), from.end(), out[0].as<float>().begin(),
                   [this](float x) { return factor_ * x + 1; });
  }

 private:
  float factor_;
};

// Computes out = max(in, 0).
class Relu final : public TestOp {
 public:
  explicit Relu(TestOpOptions options = {}) : TestOp(options) {}
  std::string_view name() const override { return "relu"; }
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override {
    const auto from = in[0].as<float>();
    std::transform(from.begin(), from.end(), out[0].as<float>().begin(),
                   [](float x) { return std::max(x, 0.0F); });
  }
};

// Computes out = in[0] - in[1] / 2, so the order of the inputs matters.
class Combine final : public TestOp {
 public:
  explicit Combine(TestOpOptions options = {}) : TestOp(options) {}
  std::string_view name() const override { return "combine"; }
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override {
    const auto a = in[0].as<float>();
    const auto b = in[1].as<float>();
    std::transform(a.begin(), a.end(), b.begin(), out[0].as<float>().begin(),
                   [](float x, float y) { return x - y / 2; });
  }
};

// Computes in[0] + in[1] and in[0] - in[1]; either output may overwrite either input.
class SumAndDifference final : public TestOp {
 public:
  explicit SumAndDifference(TestOpOptions options = {})
      : TestOp(options), in_place_(options.in_place) {}
  std::string_view name() const override { return "sum_and_difference"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override {
    return {in[0], in[0]};
  }
  bool may_overwrite(std::size_t /*input*/, std::size_t /*output*/) const override {
    return in_place_;
  }
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override {
    for (std::size_t i = 0; i < in[0].as<float>().size(); ++i) {
      const float a = in[0].as<float>()[i];
      const float b = in[1].as<float>()[i];
      out[0].as<float>()[i] = a + b;
      out[1].as<float>()[i] = a - b;
    }
  }

 private:
  bool in_place_;
};

// Computes w -= g / 4 for the inputs w (mutated) and g. The output is the sum of the old w, an f32
// scalar.
class Descend final : public TestOp {
 public:
  explicit Descend(TestOpOptions options = {}) : TestOp(options) {}
  std::string_view name() const override { return "descend"; }
  bool mutates(std::size_t input) const override { return input == 0; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> /*in*/) const override {
    return {TensorDesc{}};
  }
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override {
    const auto w = in[0].as<float>();
    const auto g = in[1].as<float>();
    float sum = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      sum += w[i];
      w[i] -= g[i] / 4;
    }
    out[0].as<float>()[0] = sum;
  }
};

// Has only shapes: it reads all inputs, declares the given outputs and computes nothing.
class Opaque final : public TestOp {
 public:
  explicit Opaque(std::vector<TensorDesc> outputs, TestOpOptions options = {})
      : TestOp(options), outputs_(std::move(outputs)) {}
  std::string_view name() const override { return "opaque"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> /*in*/) const override {
    return outputs_;
  }
  void reference(std::span<const TensorView> /*in*/,
                 std::span<const TensorView> /*out*/) const override {}

 private:
  std::vector<TensorDesc> outputs_;
};

inline TensorDesc floats(std::int64_t count) { return {.shape = Shape{count}}; }

}  // namespace cnn::tests
