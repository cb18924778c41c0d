// Compares every CUDA kernel of ours on the emulated grid with the reference loops of its op, on
// every case that is small enough for fibers. Every order of blocks and threads must give the same
// bits.

#include "tests/layers/conformance.h"

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "layers/cuda/own_kernels.h"
#include "tests/layers/cases.h"
#include "tests/support/grid/on_grid.h"

namespace cnn::tests {
namespace {

Backend backend_of(DataType compute, grid::Order order) {
  KernelTable own;
  layers::cuda::add_own_kernels(own);
  return {.name = "grid_" + std::string(name_of(compute)) + ", " + to_string(order),
          .table = grid::in_order(std::move(own), order),
          .image = Layout::nhwc,
          .compute = compute};
}

bool equal_results(const OpRun& a, const OpRun& b) {
  return std::ranges::equal(a.out, b.out, equal_bytes) &&
         std::ranges::equal(a.after, b.after, equal_bytes);
}

// A case that takes the reference loops minutes would take fibers hours.
constexpr std::int64_t largest_tensor = 300'000;

bool is_small(const Signature& signature) {
  const auto fits = [](const TensorDesc& desc) { return desc.shape.elements() <= largest_tensor; };
  return std::ranges::all_of(signature.in, fits) && std::ranges::all_of(signature.out, fits);
}

// Returns whether the table has a kernel for the node.
bool check_in_all_orders(std::span<const Backend> backends, const Subject& subject,
                         double tolerance) {
  std::optional<OpRun> first = check_node(backends[0], subject, tolerance);
  if (!first) {
    return false;
  }
  const Signature signature = request(subject.graph, subject.node, Layout::nhwc);
  for (const Backend& backend : backends.subspan(1)) {
    const auto run =
        run_op(backend.table, *subject.node.op, signature, views_of(subject.expected.before));
    EXPECT_TRUE(run && equal_results(*first, *run))
        << subject.node.op->name() << " gives other bits in another order: " << backend.name;
  }
  for (const Backend& backend : backends) {
    check_pitched(backend, subject, *first);
  }
  return true;
}

struct Row {
  Case test_case;
  DataType compute{};
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.test_case; }

class GridConformance : public testing::TestWithParam<Row> {};

TEST_P(GridConformance, KernelsComputeWhatTheirOpsDefineInEveryOrder) {
  const auto& [row, compute] = GetParam();
  std::vector<Backend> backends;
  for (const grid::Order order : grid::all_orders()) {
    backends.push_back(backend_of(compute, order));
  }
  const BuiltCase built = build(row, compute);
  Interpreter values(*built.graph);
  const double tolerance =
      compute == DataType::f32 ? row.tolerance : std::max(row.tolerance, row.bf16_tolerance);
  std::size_t ran = 0;
  for (const Node& node : built.graph->nodes()) {
    const Subject subject(values, node);
    if (is_small(request(*built.graph, node, Layout::nhwc))) {
      ran += check_in_all_orders(backends, subject, tolerance) ? 1 : 0;
    }
    values.adopt(node, views_of(subject.expected.after), views_of(subject.expected.out));
  }
  if (ran == 0) {
    GTEST_SKIP() << "this case has no kernel of ours";
  }
}

TEST_P(GridConformance, KernelsPassOnNonFiniteInputs) {
  const auto& [row, compute] = GetParam();
  const Backend backend = backend_of(compute, grid::all_orders().front());
  const BuiltCase built = build(row, compute);
  Interpreter values(*built.graph);
  plant_non_finite(values, Role::input);
  const double tolerance =
      compute == DataType::f32 ? row.tolerance : std::max(row.tolerance, row.bf16_tolerance);
  std::size_t ran = 0;
  for (const Node& node : built.graph->nodes()) {
    const Subject subject(values, node);
    if (is_small(request(*built.graph, node, Layout::nhwc))) {
      ran += check_node(backend, subject, tolerance, allowed_for(*node.op)) ? 1 : 0;
    }
    values.adopt(node, views_of(subject.expected.after), views_of(subject.expected.out));
  }
  if (ran == 0) {
    GTEST_SKIP() << "this case has no kernel of ours";
  }
}

std::vector<Row> rows() {
  std::vector<Row> result;
  for (const Case& row : all_cases()) {
    for (const DataType compute : {DataType::f32, DataType::bf16, DataType::f16}) {
      if (row.weight != Weight::heavy) {
        result.push_back({row, compute});
      }
    }
  }
  return result;
}

std::string test_name(const testing::TestParamInfo<Row>& info) {
  std::string name = info.param.test_case.name + "_" + std::string(name_of(info.param.compute));
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Own, GridConformance, testing::ValuesIn(rows()), test_name);

}  // namespace
}  // namespace cnn::tests
