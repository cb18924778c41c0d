#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/program.h"
#include "tests/support/test_ops.h"

// Builds graphs in which some images are views of others, as concat and split in place make them.
namespace cnn::tests {

inline TensorDesc image(std::int64_t channels, std::int64_t height = 1) {
  return {.shape = {2, channels, height, 3}, .layout = Layout::nhwc};
}

// Concatenates the channels of several images.
class Join final : public TestOp {
 public:
  explicit Join(TestOpOptions options = {}) : TestOp(options) {}
  std::string_view name() const override { return "join"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override {
    std::int64_t channels = 0;
    for (const TensorDesc& part : in) {
      channels += part.shape[1];
    }
    return {image(channels)};
  }
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override {
    const std::size_t pixels = 6;
    std::size_t channel = 0;
    const std::size_t channels = out[0].as<float>().size() / pixels;
    for (const TensorView& part : in) {
      const auto from = part.as<float>();
      const std::size_t count = from.size() / pixels;
      for (std::size_t i = 0; i < from.size(); ++i) {
        out[0].as<float>()[i / count * channels + channel + i % count] = from[i];
      }
      channel += count;
    }
  }
};

// Takes four channels of an image.
class Take final : public TestOp {
 public:
  explicit Take(std::size_t first, TestOpOptions options = {}) : TestOp(options), first_(first) {}
  std::string_view name() const override { return "take"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> /*in*/) const override {
    return {image(4)};
  }
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override {
    const auto to = out[0].as<float>();
    const std::size_t channels = in[0].as<float>().size() / (to.size() / 4);
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = in[0].as<float>()[i / 4 * channels + first_ + i % 4];
    }
  }

 private:
  std::size_t first_;
};

// Runs an op on images of any pitch and on plain tensors. Its results start as NaN. A join or a
// take of a view copies nothing, because the data is already in place.
class SpreadKernel final : public Kernel {
 public:
  explicit SpreadKernel(const Op& op) : op_(op) {}
  void run(Stream& stream, const Operands& operands) override {
    stream.host([this, &operands] {
      if (!is_there(operands)) {
        compute(operands);
      }
    });
  }

 private:
  static bool lies_inside(const TensorView& part, const TensorView& whole) {
    return whole.data <= part.data && part.data < whole.data + whole.desc.bytes();
  }
  bool is_there(const Operands& operands) const {
    return (op_.name() == "join" && lies_inside(operands.in[0], operands.out[0])) ||
           (op_.name() == "take" && lies_inside(operands.out[0], operands.in[0]));
  }

  // Returns the offset of the element whose offset would be `i` if pixels had no gaps.
  static std::size_t place(const TensorDesc& desc, std::size_t i) {
    if (desc.layout != Layout::nhwc) {
      return i;
    }
    const auto channels = static_cast<std::size_t>(desc.shape[1]);
    return i / channels * static_cast<std::size_t>(pitch_of(desc)) + i % channels;
  }
  static std::vector<float> dense(const TensorView& view) {
    std::vector<float> values(static_cast<std::size_t>(view.desc.shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = view.as<float>()[place(view.desc, i)];
    }
    return values;
  }
  static void spread(const std::vector<float>& values, const TensorView& view) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      view.as<float>()[place(view.desc, i)] = values[i];
    }
  }

  void compute(const Operands& operands) const {
    std::vector<std::vector<float>> in;
    std::vector<std::vector<float>> out;
    std::vector<TensorView> in_views;
    std::vector<TensorView> out_views;
    const auto view = [](std::vector<float>& values) {
      return TensorView{floats(static_cast<std::int64_t>(values.size())),
                        reinterpret_cast<std::byte*>(values.data())};
    };
    for (const TensorView& operand : operands.in) {
      in.push_back(dense(operand));
      in_views.push_back(view(in.back()));
    }
    for (const TensorView& operand : operands.out) {
      out.emplace_back(static_cast<std::size_t>(operand.desc.shape.elements()),
                       std::numeric_limits<float>::quiet_NaN());
      spread(out.back(), operand);
      out_views.push_back(view(out.back()));
    }
    op_.reference(in_views, out_views);
    for (std::size_t o = 0; o < out.size(); ++o) {
      spread(out[o], operands.out[o]);
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (op_.mutates(i)) {
        spread(in[i], operands.in[i]);
      }
    }
  }

  const Op& op_;
};

inline KernelTable spread_kernels() {
  KernelTable table;
  table.otherwise(
      [](const Op&, const Signature& request) {
        return KernelSpec{.workspace = 0, .in = request.in, .out = request.out};
      },
      [](const Op& op, const Signature&) { return std::make_unique<SpreadKernel>(op); });
  return table;
}

// A random graph of some tens of nodes on three lanes, one per seed. It has images joined in place
// or by copies, views that are read on their own, values that are read much later, ops in place,
// updates and images of height zero.
class RandomJoins {
 public:
  explicit RandomJoins(unsigned seed) : random_(seed) {
    images_ = {graph_->input("x", image(4)), graph_->input("y", image(4))};
    empty_ = {graph_->input("nothing", image(4, 0))};
    weight_ = graph_->parameter("w", image(4), {});
    for (int n = 0; n < 40; ++n) {
      add_node();
    }
    const Value sum = make(std::make_shared<const Descend>(), {weight_, some()}, {TensorDesc{}});
    graph_->output("sum", sum);
    graph_->output("last", scaled(images_.back()));
    graph_->output("middle", scaled(images_[images_.size() / 2]));
    graph_->output("nothing", scaled(empty_.back()));
    for (const Part& part : parts_) {
      graph_->place_inside(part.tensor, part.root, part.channel);
    }
  }
  std::shared_ptr<const Graph> graph() const { return graph_; }

 private:
  struct Part {
    TensorId tensor{}, root{};
    std::int64_t channel = 0;
  };

  std::size_t any(std::size_t below) { return random_() % below; }
  // Prefers recent values, so that chains form; an occasional old one makes a live interval long.
  Value some() {
    const std::size_t back =
        any(4) == 0 ? images_.size() : std::min<std::size_t>(3, images_.size());
    return images_[images_.size() - 1 - any(back)];
  }
  TestOpOptions options() {
    constexpr Lane lanes[] = {Lane::compute, Lane::compute, Lane::side, Lane::communicate};
    return {.lane = lanes[any(4)], .in_place = any(2) == 0};
  }

  // The test ops ignore layouts, so this sets those of the outputs.
  Value make(std::shared_ptr<const Op> op, const std::vector<Value>& in,
             const std::vector<TensorDesc>& out) {
    Node node{.op = std::move(op), .inputs = {}, .outputs = {}};
    for (const Value& value : in) {
      node.inputs.push_back(value.id);
    }
    const std::string name =
        std::string(node.op->name()) + "#" + std::to_string(graph_->nodes().size());
    for (const TensorDesc& desc : out) {
      node.outputs.push_back(graph_->add_tensor({.name = name, .desc = desc}));
    }
    const Value first{graph_.get(), node.outputs.front()};
    graph_->add_node(std::move(node));
    return first;
  }
  Value scaled(Value value) {
    return make(std::make_shared<const Scale>(2, options()), {value}, {value.desc()});
  }

  void add_node() {
    switch (any(7)) {
      case 0:
        images_.push_back(scaled(some()));
        break;
      case 1:
        images_.push_back(make(std::make_shared<const Relu>(options()), {some()}, {image(4)}));
        break;
      case 2:
        images_.push_back(
            make(std::make_shared<const Combine>(options()), {some(), some()}, {image(4)}));
        break;
      case 3: {
        const Value sum = make(std::make_shared<const SumAndDifference>(options()),
                               {some(), some()}, {image(4), image(4)});
        images_.push_back(sum);
        images_.push_back({graph_.get(), graph_->nodes().back().outputs[1]});
        break;
      }
      case 4:
        empty_.push_back(make(std::make_shared<const Combine>(options()),
                              {empty_[any(empty_.size())], empty_.back()}, {image(4, 0)}));
        break;
      default:
        join();
    }
  }

  // Joins two or three images and continues with some of the result's channels.
  void join() {
    std::vector<Value> parts;
    for (std::size_t p = 2 + any(2); p > 0; --p) {
      const Value part = some();
      if (std::ranges::find(parts, part) == parts.end()) {
        parts.push_back(part);
      }
    }
    const bool in_place = any(3) > 0 && std::ranges::all_of(parts, [&](Value part) {
                            return graph_->info(part.id).role == Role::activation &&
                                   std::ranges::find(shared_, part) == shared_.end();
                          });
    const auto channels = static_cast<std::int64_t>(4 * parts.size());
    const Value whole = make(std::make_shared<const Join>(options()), parts, {image(channels)});
    for (std::size_t p = 0; in_place && p < parts.size(); ++p) {
      place(parts[p], whole, 4 * p);
    }
    const std::size_t first = 4 * any(parts.size());
    const Value from = any(2) == 0 ? whole : scaled(whole);
    images_.push_back(make(std::make_shared<const Take>(first, options()), {from}, {image(4)}));
    if (from != whole && any(2) == 0) {
      place(images_.back(), from, first);
    }
  }
  void place(Value part, Value whole, std::size_t channel) {
    parts_.push_back({part.id, whole.id, static_cast<std::int64_t>(channel)});
    shared_.push_back(part);
  }

  std::mt19937 random_;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::vector<Value> images_;  // images of four channels
  std::vector<Value> empty_;
  Value weight_;
  std::vector<Part> parts_;
  std::vector<Value> shared_;
};

}  // namespace cnn::tests
