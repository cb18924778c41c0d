#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/op.h"
#include "runtime/tensor.h"

namespace cnn::tests {

// An op with any name and outputs of any shape. Each output is a different mixture of all inputs,
// which the op repeats or truncates to the output's size.
class Mix final : public Op {
 public:
  Mix(std::string name, std::vector<TensorDesc> out, bool in_place = false)
      : name_(std::move(name)), out_(std::move(out)), in_place_(in_place) {}

  std::string_view name() const override { return name_; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> /*in*/) const override { return out_; }
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override {
    for (std::size_t o = 0; o < out.size(); ++o) {
      const auto to = out[o].as<float>();
      for (std::size_t k = 0; k < to.size(); ++k) {
        float sum = 0;
        for (std::size_t i = 0; i < in.size(); ++i) {
          const auto from = in[i].as<float>();
          sum += (from.empty() ? 1 : from[k % from.size()]) / static_cast<float>(i + o + 2);
        }
        to[k] = sum;
      }
    }
  }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return in_place_ && input == 0 && output == 0;
  }

 private:
  std::string name_;
  std::vector<TensorDesc> out_;
  bool in_place_;
};

// Concatenates the channels of two nhwc images. Its inputs may be views into its output.
class Join final : public Op {
 public:
  std::string_view name() const override { return "concat"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override {
    TensorDesc out = in[0];
    out.shape[1] += in[1].shape[1];
    return {out};
  }
  // The storage order is two images of eight pixels.
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override {
    constexpr std::size_t pixels = 16;
    float* to = out[0].as<float>().data();
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      for (const TensorView& part : in) {
        const std::size_t channels = part.as<float>().size() / pixels;
        to = std::copy_n(part.as<float>().begin() + static_cast<std::ptrdiff_t>(pixel * channels),
                         channels, to);
      }
    }
  }
};

// A kernel that runs an op's reference loops on tensors of any pitch. It poisons outputs and
// workspace first.
class PitchedKernel final : public Kernel {
 public:
  explicit PitchedKernel(const Op& op) : op_(op) {}
  void run(Stream& stream, const Operands& operands) override {
    stream.host([op = &op_, &operands] { compute(*op, operands); });
  }

 private:
  // Returns the offset of the element whose offset would be `i` if pixels had no gaps.
  static std::size_t place(const TensorDesc& desc, std::size_t i) {
    if (desc.pitch == 0) {
      return i;
    }
    const auto channels = static_cast<std::size_t>(desc.shape[1]);
    return i / channels * static_cast<std::size_t>(desc.pitch) + i % channels;
  }
  static std::vector<float> gathered(const TensorView& view) {
    std::vector<float> values(static_cast<std::size_t>(view.desc.shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = view.as<float>()[place(view.desc, i)];
    }
    return values;
  }
  static TensorView view_of(std::vector<float>& values) {
    return {.desc = {.shape = {static_cast<std::int64_t>(values.size())}},
            .data = reinterpret_cast<std::byte*>(values.data())};
  }

  static void compute(const Op& op, const Operands& operands) {
    std::vector<std::vector<float>> in, out;
    std::vector<TensorView> in_views, out_views;
    for (const TensorView& view : operands.in) {
      in.push_back(gathered(view));
    }
    for (const TensorView& view : operands.out) {
      out.emplace_back(static_cast<std::size_t>(view.desc.shape.elements()));
    }
    std::ranges::transform(in, std::back_inserter(in_views), view_of);
    std::ranges::transform(out, std::back_inserter(out_views), view_of);
    op.reference(in_views, out_views);
    std::ranges::fill(operands.workspace, std::byte{0xFF});
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (op.mutates(i)) {
        scatter(in[i], operands.in[i]);
      }
    }
    for (std::size_t o = 0; o < out.size(); ++o) {
      scatter(out[o], operands.out[o]);
    }
  }
  static void scatter(const std::vector<float>& values, const TensorView& view) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      view.as<float>()[place(view.desc, i)] = values[i];
    }
  }

  const Op& op_;
};

// Returns the kernels of the ops above, each with `workspace` bytes of workspace.
inline KernelTable mix_kernels(std::size_t workspace) {
  KernelTable table;
  table.otherwise(
      [workspace](const Op&, const Signature& request) {
        return KernelSpec{.workspace = workspace, .in = request.in, .out = request.out};
      },
      [](const Op& op, const Signature&) { return std::make_unique<PitchedKernel>(op); });
  return table;
}

}  // namespace cnn::tests
