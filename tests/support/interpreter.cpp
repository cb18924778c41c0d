#include "tests/support/interpreter.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "layers/initializer.h"
#include "runtime/error.h"

namespace cnn::tests {

namespace {

// A value is middle + spread * u, where u is uniform in [-1, 1).
struct Distribution {
  double middle = 0, spread = 1;
};

Distribution distribution_of(const TensorInfo& info) {
  struct Row {
    std::string_view end;
    Distribution distribution;
  };
  static constexpr Row rows[] = {
      {"gamma", {1, 0.5}},        {"variance", {1, 0.5}},      {"/RMSProp", {1, 0.5}},
      {"/Adam_1", {1, 0.5}},      {"learning_rate", {0.1, 0}}, {"beta1_power", {0.81, 0}},
      {"beta2_power", {0.99, 0}}, {"loss_scale", {128, 0}},    {"normal_steps", {3, 0}},
  };
  for (const Row& row : rows) {
    if (info.name.ends_with(row.end)) {
      return row.distribution;
    }
  }
  const Shape& shape = info.desc.shape;
  if (info.role == Role::parameter && shape.rank() >= 2) {
    // Weights [O, ...] or [in, out] are uniform with variance 1 / fan_in.
    const std::int64_t fan_in = shape.rank() == 2 ? shape[0] : shape.elements() / shape[0];
    return {0, std::sqrt(3.0 / static_cast<double>(fan_in))};
  }
  return {};
}

}  // namespace

void fill_by_name(const TensorInfo& info, DataType compute, std::uint64_t seed,
                  const TensorView& plain_values) {
  const std::uint64_t stream = layers::fnv1a(info.name) + seed * 0xD1B54A32D192ED03ULL;
  if (info.desc.type == DataType::i32) {
    const auto values = plain_values.as<std::int32_t>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::int32_t>(layers::random_bits(stream, i) % 10);
    }
    return;
  }
  if (info.desc.type == DataType::u8) {
    const auto values = plain_values.as<std::uint8_t>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::uint8_t>(layers::random_bits(stream, i));
    }
    return;
  }
  const auto [middle, spread] = distribution_of(info);
  const auto values = plain_values.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double unit = static_cast<double>(layers::random_bits(stream, i) >> 40) * 0x1p-23 - 1;
    values[i] = static_cast<float>(middle + spread * unit);
  }
  round_to(info.role == Role::parameter ? compute : info.desc.type, plain_values);
}

Interpreter::Interpreter(const Graph& graph, std::uint64_t seed) : graph_(graph) {
  for (const TensorInfo& info : graph.tensors()) {
    values_.emplace_back(plain(info.desc));
    if (info.role != Role::activation) {
      fill_by_name(info, graph.traits().compute, seed, values_.back().view());
    }
  }
}

TensorId Interpreter::find(std::string_view name) const {
  const std::optional<TensorId> id = graph_.find(name);
  if (!id) {
    throw Error("the graph has no tensor " + std::string(name));
  }
  return *id;
}

std::span<float> Interpreter::floats(std::string_view name) const {
  return view(find(name)).as<float>();
}

std::span<std::int32_t> Interpreter::ints(std::string_view name) const {
  return view(find(name)).as<std::int32_t>();
}

std::vector<TensorView> Interpreter::views(std::span<const TensorId> ids) const {
  std::vector<TensorView> result;
  for (const TensorId id : ids) {
    result.push_back(view(id));
  }
  return result;
}

void Interpreter::run(const Node& node) {
  node.op->reference(views(node.inputs), views(node.outputs));
  for (const TensorId output : node.outputs) {
    round_to(graph_.info(output).desc.type, view(output));
  }
}

void Interpreter::adopt(const Node& node, std::span<const TensorView> in,
                        std::span<const TensorView> out) {
  const auto take = [this](std::span<const TensorId> ids, std::span<const TensorView> from) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::copy_n(from[i].data, from[i].desc.bytes(), view(ids[i]).data);
    }
  };
  take(node.inputs, in);
  take(node.outputs, out);
}

void Interpreter::run() {
  for (const Node& node : graph_.nodes()) {
    run(node);
  }
}

}  // namespace cnn::tests
