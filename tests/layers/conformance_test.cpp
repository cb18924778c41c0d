// Compares every kernel of every backend with the reference loops of its op on every case.

#include "tests/layers/conformance.h"

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <optional>

#include "tests/layers/backends.h"
#include "tests/layers/cases.h"
#include "tests/support/interpreter.h"

namespace cnn::tests {
namespace {

class Conformance : public testing::TestWithParam<Case> {};
class PitchOnCpu : public testing::TestWithParam<Case> {};

// non_finite: the role of the tensors that get NaN and infinities; none if it is empty.
void check_case(const Case& row, std::optional<Role> non_finite) {
  std::size_t ran = 0;
  for (const DataType compute : {DataType::f32, DataType::bf16, DataType::f16}) {
    const BuiltCase built = build(row, compute);
    Interpreter values(*built.graph);
    if (non_finite) {
      plant_non_finite(values, *non_finite);
    }
    const double tolerance =
        compute == DataType::f32 ? row.tolerance : std::max(row.tolerance, row.bf16_tolerance);
    const std::vector<Backend> backends = all_backends();
    for (const Node& node : built.graph->nodes()) {
      const Subject subject(values, node);
      const NonFinite allowed = non_finite ? allowed_for(*node.op) : NonFinite::exact;
      for (const Backend& backend : backends) {
        if (backend.compute == compute) {
          ran += check_node(backend, subject, tolerance, allowed) ? 1 : 0;
        }
      }
      values.adopt(node, views_of(subject.expected.after), views_of(subject.expected.out));
    }
  }
  if (ran == 0) {
    GTEST_SKIP() << "no backend has a kernel for this case";
  }
}

TEST_P(Conformance, KernelsComputeWhatTheirOpsDefine) { check_case(GetParam(), std::nullopt); }

TEST_P(Conformance, KernelsPassOnNonFiniteInputs) { check_case(GetParam(), Role::input); }

TEST_P(Conformance, KernelsPassOnNonFiniteParameters) { check_case(GetParam(), Role::parameter); }

// These kernels would read past the pixels of a view, so they must not accept a pitch.
TEST_P(PitchOnCpu, IsTakenByNoKernel) {
  const BuiltCase built = build(GetParam(), DataType::f32);
  for (const Backend& backend : all_backends()) {
    for (const Node& node : built.graph->nodes()) {
      const Signature signature = request(*built.graph, node, Layout::nhwc);
      EXPECT_FALSE(spread_out(backend.table, *node.op, signature))
          << backend.name << ": " << node.op->name();
    }
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
INSTANTIATE_TEST_SUITE_P(All, PitchOnCpu, testing::ValuesIn(cases_of(false)), test_name);
INSTANTIATE_TEST_SUITE_P(Slow, Conformance, testing::ValuesIn(cases_of(true)), test_name);

}  // namespace
}  // namespace cnn::tests
