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

bool equal_bytes(const TensorView& a, const TensorView& b) {
  return std::equal(a.data, a.data + a.desc.bytes(), b.data);
}

// Holds a run against the op's own loops on the operands that the kernel saw.
void expect_like_reference(const Op& op, OpRun& run, std::span<const TensorDesc> promised,
                           double tolerance) {
  std::vector<TensorView> in;
  std::vector<TensorView> out;
  std::vector<HostTensor> results;
  for (const HostTensor& input : run.before) {
    in.push_back(input.view());
  }
  for (const TensorDesc& desc : promised) {
    results.emplace_back(plain(desc));
  }
  for (const HostTensor& result : results) {
    out.push_back(result.view());
  }
  op.reference(in, out);  // mutates `before` where the op mutates
  for (std::size_t i = 0; i < out.size(); ++i) {
    round_to(promised[i].type, out[i]);
    if (const auto text = difference(out[i], run.out[i].view(), tolerance)) {
      ADD_FAILURE() << "output " << i << ": " << *text;
    }
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!op.mutates(i)) {
      continue;
    }
    if (const auto text = difference(in[i], run.after[i].view(), tolerance)) {
      ADD_FAILURE() << "mutated input " << i << ": " << *text;
    }
  }
}

// Runs one node by the backend, alone and with output 0 in the place of each input that permits it.
// Returns whether the backend has a kernel for it.
bool check_node(const Backend& backend, const Interpreter& values, const Node& node,
                double tolerance) {
  const Graph& graph = values.graph();
  const Signature signature = asked(graph, node, backend.image);
  const std::vector<TensorView> in = values.views(node.inputs);
  auto run = run_op(backend.table, *node.op, signature, in);
  if (!run) {
    return false;
  }
  SCOPED_TRACE(std::string(node.op->name()) + " as " + to_string(run->signature));
  for (std::size_t i = 0; i < in.size() && !signature.out.empty(); ++i) {
    if (!node.op->may_overwrite(i)) {
      continue;
    }
    const auto in_place = run_op(backend.table, *node.op, signature, in, i);
    if (in_place && run->signature.in[i].layout != Layout::packed) {
      EXPECT_TRUE(equal_bytes(run->out[0].view(), in_place->out[0].view()))
          << "output 0 differs when it overwrites input " << i;
    }
  }
  expect_like_reference(*node.op, *run, signature.out, tolerance);
  return true;
}

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, KernelsComputeWhatTheirOpsDefine) {
  const Case& row = GetParam();
  std::size_t ran = 0;
  for (const DataType compute : {DataType::f32, DataType::bf16}) {
    const BuiltCase built = build(row, compute);
    Interpreter values(*built.graph);
    // bf16 results may differ by a unit in the last place, 2^-8.
    const double tolerance =
        compute == DataType::bf16 ? std::max(row.tolerance, 0.01) : row.tolerance;
    const std::vector<Backend> backends = all_backends();
    for (const Node& node : built.graph->nodes()) {
      for (const Backend& backend : backends) {
        SCOPED_TRACE(backend.name);
        if (backend.compute == compute) {
          ran += check_node(backend, values, node, tolerance) ? 1 : 0;
        }
      }
      values.run(node);
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
