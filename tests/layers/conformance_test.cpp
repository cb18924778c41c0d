// Every kernel of every backend against the plain loops of its op, on every case.

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/layers/backends.h"
#include "tests/layers/cases.h"
#include "tests/support/interpreter.h"
#include "tests/support/numeric.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {
namespace {

// What the layout pass would ask: images in the backend's layout, all else row-major.
Signature asked(const Graph& graph, const Node& node, Layout image_layout) {
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

std::vector<HostTensor> copies_of(std::span<const TensorView> views) {
  std::vector<HostTensor> result;
  for (const TensorView& view : views) {
    result.push_back(copy_of(view));
  }
  return result;
}

std::vector<TensorView> views_of(std::span<const HostTensor> tensors) {
  std::vector<TensorView> result;
  for (const HostTensor& tensor : tensors) {
    result.push_back(tensor.view());
  }
  return result;
}

// What the op's own loops make of given operands.
struct Expected {
  std::vector<HostTensor> before, after, out;

  Expected(const Op& op, std::span<const TensorView> in, std::span<const TensorDesc> promised)
      : before(copies_of(in)), after(copies_of(in)) {
    for (const TensorDesc& desc : promised) {
      out.emplace_back(plain(desc));
    }
    op.reference(views_of(after), views_of(out));
    for (std::size_t i = 0; i < out.size(); ++i) {
      round_to(promised[i].type, out[i].view());
    }
  }
};

void expect_like(const Expected& expected, const OpRun& run, double tolerance) {
  for (std::size_t i = 0; i < expected.out.size(); ++i) {
    const auto text = difference(expected.out[i].view(), run.out[i].view(), tolerance);
    EXPECT_FALSE(text) << "output " << i << ": " << text.value_or("");
  }
  for (std::size_t i = 0; i < expected.after.size(); ++i) {
    const auto text = difference(expected.after[i].view(), run.after[i].view(), tolerance);
    EXPECT_FALSE(text) << "input " << i << " afterwards: " << text.value_or("");
  }
}

// One node of a case, and what it must compute on the case's operands.
struct Subject {
  const Graph& graph;
  const Node& node;
  std::vector<TensorDesc> promised;
  Expected expected;

  Subject(const Interpreter& values, const Node& of)
      : graph(values.graph()),
        node(of),
        promised(descs(values.graph(), of)),
        expected(*of.op, values.views(of.inputs), promised) {}

  static std::vector<TensorDesc> descs(const Graph& graph, const Node& node) {
    std::vector<TensorDesc> result;
    for (const TensorId id : node.outputs) {
      result.push_back(graph.info(id).desc);
    }
    return result;
  }
};

// Output 0 in the place of an input that permits it must come out the same.
void check_in_place(const Backend& backend, const Subject& subject, const OpRun& apart) {
  const Op& op = *subject.node.op;
  const Signature signature = asked(subject.graph, subject.node, backend.image);
  const std::vector<TensorView> in = views_of(subject.expected.before);
  for (std::size_t i = 0; i < in.size() && !apart.out.empty(); ++i) {
    if (!op.may_overwrite(i) || apart.signature.in[i].layout == Layout::packed) {
      continue;
    }
    const auto in_place = run_op(backend.table, op, signature, in, i);
    EXPECT_TRUE(!in_place || equal_bytes(apart.out[0], in_place->out[0]))
        << "output 0 differs when it overwrites input " << i;
  }
}

// Returns whether the backend has a kernel for the node.
bool check_node(const Backend& backend, const Subject& subject, double tolerance) {
  const Op& op = *subject.node.op;
  const Signature signature = asked(subject.graph, subject.node, backend.image);
  const auto run = run_op(backend.table, op, signature, views_of(subject.expected.before));
  if (!run) {
    return false;
  }
  SCOPED_TRACE(backend.name + ": " + std::string(op.name()) + " as " + to_string(run->signature));
  check_in_place(backend, subject, *run);
  // A kernel that reads a narrower type than promised is held against the rounded operands.
  if (std::ranges::equal(run->before, subject.expected.before, equal_bytes)) {
    expect_like(subject.expected, *run, tolerance);
  } else {
    expect_like(Expected(op, views_of(run->before), subject.promised), *run, tolerance);
  }
  return true;
}

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, KernelsComputeWhatTheirOpsDefine) {
  const Case& row = GetParam();
  std::size_t ran = 0;
  for (const DataType compute : {DataType::f32, DataType::bf16}) {
    const BuiltCase built = build(row, compute);
    Interpreter values(*built.graph);
    const double tolerance =
        compute == DataType::bf16 ? std::max(row.tolerance, row.bf16_tolerance) : row.tolerance;
    const std::vector<Backend> backends = all_backends();
    for (const Node& node : built.graph->nodes()) {
      const Subject subject(values, node);
      for (const Backend& backend : backends) {
        if (backend.compute == compute) {
          ran += check_node(backend, subject, tolerance) ? 1 : 0;
        }
      }
      values.adopt(node, views_of(subject.expected.after), views_of(subject.expected.out));
    }
  }
  if (ran == 0) {
    GTEST_SKIP() << "no backend has a kernel for this case";
  }
}

std::vector<Case> cases_of(bool heavy) {
  std::vector<Case> result = all_cases();
  std::erase_if(result, [=](const Case& row) { return (row.weight == Weight::heavy) != heavy; });
  return result;
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Conformance, testing::ValuesIn(cases_of(false)), test_name);
INSTANTIATE_TEST_SUITE_P(Slow, Conformance, testing::ValuesIn(cases_of(true)), test_name);

}  // namespace
}  // namespace cnn::tests
