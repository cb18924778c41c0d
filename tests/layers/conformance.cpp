#include "tests/layers/conformance.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <string_view>

#include "runtime/divide_up.h"
#include "tests/support/numeric.h"

namespace cnn::tests {

namespace {

std::vector<HostTensor> copies_of(std::span<const TensorView> views) {
  std::vector<HostTensor> result;
  for (const TensorView& view : views) {
    result.push_back(copy_of(view));
  }
  return result;
}

std::vector<TensorDesc> descs(const Graph& graph, const Node& node) {
  std::vector<TensorDesc> result;
  for (const TensorId id : node.outputs) {
    result.push_back(graph.info(id).desc);
  }
  return result;
}

void expect_like(const Expected& expected, const OpRun& run, double tolerance, NonFinite allowed) {
  for (std::size_t i = 0; i < expected.out.size(); ++i) {
    const auto text = difference(expected.out[i].view(), run.out[i].view(), tolerance, allowed);
    EXPECT_FALSE(text) << "output " << i << ": " << text.value_or("");
  }
  for (std::size_t i = 0; i < expected.after.size(); ++i) {
    const auto text = difference(expected.after[i].view(), run.after[i].view(), tolerance, allowed);
    EXPECT_FALSE(text) << "input " << i << " afterwards: " << text.value_or("");
  }
}

// Returns every nonempty subset of permitted in-place pairs in which no input serves two outputs.
// candidates: the permitted pairs, in the order of their outputs.
std::vector<std::vector<InPlace>> choices(const std::vector<InPlace>& candidates) {
  std::vector<std::vector<InPlace>> result{{}};
  for (const InPlace& pair : candidates) {
    const std::size_t before = result.size();
    for (std::size_t i = 0; i < before; ++i) {
      if (std::ranges::none_of(result[i], [&](const InPlace& other) {
            return other.input == pair.input || other.output == pair.output;
          })) {
        result.push_back(result[i]);
        result.back().push_back(pair);
      }
    }
  }
  result.erase(result.begin());
  return result;
}

std::string to_string(std::span<const InPlace> pairs) {
  std::string result;
  for (const InPlace& pair : pairs) {
    result += " output " + std::to_string(pair.output) + " in the place of input " +
              std::to_string(pair.input);
  }
  return result;
}

// Results must not change if outputs overwrite the inputs that permit it.
void check_in_place(const Backend& backend, const Subject& subject, const OpRun& apart) {
  const Op& op = *subject.node.op;
  const Signature signature = request(subject.graph, subject.node, backend.image);
  const std::vector<TensorView> in = views_of(subject.expected.before);
  std::vector<InPlace> candidates;
  for (std::size_t k = 0; k < apart.out.size(); ++k) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (op.may_overwrite(i, k) && apart.signature.in[i].layout != Layout::packed) {
        candidates.push_back({.input = i, .output = k});
      }
    }
  }
  for (const std::vector<InPlace>& pairs : choices(candidates)) {
    const auto in_place = run_op(backend.table, op, signature, in, pairs);
    EXPECT_TRUE(!in_place || std::ranges::equal(apart.out, in_place->out, equal_bytes))
        << "an output differs with" << to_string(pairs);
  }
}

// Returns a pitch of three more 16-byte units than the channels need.
std::int64_t pitch_for(const TensorDesc& image) {
  const auto unit = static_cast<std::int64_t>(16 / size_of(image.type));
  return (divide_up(image.shape[1], unit) + 3) * unit;
}

}  // namespace

Signature request(const Graph& graph, const Node& node, Layout image_layout) {
  const auto describe = [&](std::span<const TensorId> ids, std::vector<TensorDesc>& into) {
    for (const TensorId id : ids) {
      const TensorInfo& info = graph.info(id);
      const bool persistent = info.role == Role::parameter || info.role == Role::state;
      into.push_back(info.desc);
      if (info.desc.shape.rank() == 4 && !persistent) {
        into.back().layout = image_layout;
      }
    }
  };
  Signature result;
  describe(node.inputs, result.in);
  describe(node.outputs, result.out);
  return result;
}

bool equal_bytes(const HostTensor& a, const HostTensor& b) {
  return std::equal(a.view().data, a.view().data + a.desc().bytes(), b.view().data);
}

std::vector<TensorView> views_of(std::span<const HostTensor> tensors) {
  std::vector<TensorView> result;
  for (const HostTensor& tensor : tensors) {
    result.push_back(tensor.view());
  }
  return result;
}

Expected::Expected(const Op& op, std::span<const TensorView> in,
                   std::span<const TensorDesc> promised)
    : before(copies_of(in)), after(copies_of(in)) {
  for (const TensorDesc& desc : promised) {
    out.emplace_back(plain(desc));
  }
  op.reference(views_of(after), views_of(out));
  for (std::size_t i = 0; i < out.size(); ++i) {
    round_to(promised[i].type, out[i].view());
  }
}

Subject::Subject(const Interpreter& values, const Node& source)
    : graph(values.graph()),
      node(source),
      promised(descs(values.graph(), source)),
      expected(*source.op, values.views(source.inputs), promised) {}

void plant_non_finite(Interpreter& values, Role role) {
  constexpr std::size_t fewest = 8;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const TensorInfo& info : values.graph().tensors()) {
    const bool is_real = info.desc.type != DataType::i32 && info.desc.type != DataType::u8;
    if (info.role != role || !is_real) {
      continue;
    }
    const std::span<float> elements = values.floats(info.name);
    if (elements.size() >= fewest) {
      elements[1] = std::numeric_limits<float>::quiet_NaN();
    }
    // With several infinite operands, the NaNs in the result depend on the order of operations.
    if (elements.size() >= fewest && role == Role::input) {
      elements[elements.size() / 2] = infinity;
      elements[elements.size() - 2] = -infinity;
    }
  }
}

NonFinite allowed_for(const Op& op) {
  // These ops compute sums of products or values derived from them.
  static constexpr std::array<std::string_view, 5> sums{"conv", "dense", "batch_norm", "lrn",
                                                        "softmax"};
  const std::string name(op.name());
  const bool is_sum = std::ranges::any_of(
      sums, [&](std::string_view part) { return name.find(part) != std::string::npos; });
  return is_sum && name != "convert" ? NonFinite::inexact : NonFinite::exact;
}

std::optional<OpRun> check_node(const Backend& backend, const Subject& subject, double tolerance,
                                NonFinite allowed) {
  const Op& op = *subject.node.op;
  const Signature signature = request(subject.graph, subject.node, backend.image);
  auto run = run_op(backend.table, op, signature, views_of(subject.expected.before));
  if (!run) {
    return std::nullopt;
  }
  SCOPED_TRACE(backend.name + ": " + std::string(op.name()) + " as " + to_string(run->signature));
  check_in_place(backend, subject, *run);
  // If the kernel reads a narrower type than promised, the reference gets the rounded operands too.
  if (std::ranges::equal(run->before, subject.expected.before, equal_bytes)) {
    expect_like(subject.expected, *run, tolerance, allowed);
  } else {
    expect_like(Expected(op, views_of(run->before), subject.promised), *run, tolerance, allowed);
  }
  return run;
}

std::optional<Signature> spread_out(const KernelTable& table, const Op& op, Signature signature) {
  for (auto* descs : {&signature.in, &signature.out}) {
    for (TensorDesc& desc : *descs) {
      desc.pitch = desc.layout == Layout::nhwc ? pitch_for(desc) : 0;
    }
  }
  const std::optional<KernelSpec> spec = table.describe(op, signature);
  const auto has_pitch = [](const TensorDesc& desc) { return desc.pitch > 0; };
  if (!spec ||
      (std::ranges::none_of(spec->in, has_pitch) && std::ranges::none_of(spec->out, has_pitch))) {
    return std::nullopt;
  }
  return Signature{.in = spec->in, .out = spec->out};
}

void check_pitched(const Backend& backend, const Subject& subject, const OpRun& apart,
                   double tolerance) {
  const Op& op = *subject.node.op;
  const std::optional<Signature> spread = spread_out(backend.table, op, apart.signature);
  if (!spread) {
    return;
  }
  SCOPED_TRACE(backend.name + ": " + std::string(op.name()) + " as " + to_string(*spread));
  const auto run = run_op(backend.table, op, *spread, views_of(apart.before));
  ASSERT_TRUE(run);
  for (std::size_t i = 0; i < apart.out.size(); ++i) {
    const auto text = difference(apart.out[i].view(), run->out[i].view(), tolerance);
    EXPECT_FALSE(text) << "output " << i << ": " << text.value_or("");
  }
}

}  // namespace cnn::tests
