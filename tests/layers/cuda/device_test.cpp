// Compares every kernel of the CUDA backend, of the libraries and our own, with the reference loops
// of its op, on every case and in every precision. Needs a GPU.

#include "runtime/cuda/device.h"

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

#include "layers/cuda/cudnn/kernels.h"
#include "tests/layers/cases.h"
#include "tests/layers/conformance.h"
#include "tests/layers/cuda/device_runner.h"

namespace cnn::tests {
namespace {

using layers::cuda::Libraries;

enum class Precision : std::uint8_t { strict, tf32, f16, bf16 };

DataType compute_of(Precision precision) {
  switch (precision) {
    case Precision::f16:
      return DataType::f16;
    case Precision::bf16:
      return DataType::bf16;
    default:
      return DataType::f32;
  }
}

// TF32 has 10 mantissa bits like f16, so a sum of products has an error of about 4e-4 of its
// typical size. Tensors of a million elements reach five times that. If a stride leaves three of
// four pixels zero, the mean to which tolerances refer is half as large.
double tolerance_of(Precision precision, const Case& row) {
  constexpr double tf32_tolerance = 0.004;
  switch (precision) {
    case Precision::strict:
      return row.tolerance;
    case Precision::tf32:
      return std::max(row.tolerance, tf32_tolerance);
    default:
      return std::max(row.tolerance, row.bf16_tolerance);
  }
}

layers::cuda::Machine machine_of(const cuda::CudaDevice& device) {
  return {.name = device.name(),
          .device_json = {},
          .capability = 10 * device.facts().major + device.facts().minor,
          .multiprocessors = device.facts().multiprocessors,
          .memory_bytes = device.facts().memory_bytes};
}

// Returns whether a mask has bytes that the channels of a pixel do not fill: no kernel takes it.
bool has_partial_mask_bytes(const Graph& graph, const Node& node) {
  const auto is_mask = [&](TensorId id) { return graph.info(id).desc.type == DataType::u8; };
  const bool masked =
      std::ranges::any_of(node.inputs, is_mask) || std::ranges::any_of(node.outputs, is_mask);
  return masked && node.op->name() != "convert" &&
         graph.info(node.inputs.front()).desc.shape[1] % 8 != 0;
}

// Fusion asks the table before it makes these ops. Only f16 has engines for convolutions with
// norms.
bool may_be_missing(const Graph& graph, const Node& node) {
  const std::string_view name = node.op->name();
  return name.starts_with("fused_conv") || name == "conv_backward_data_norm" ||
         has_partial_mask_bytes(graph, node);
}

class OnDevice : public testing::TestWithParam<std::tuple<Case, Precision>> {
 protected:
  void SetUp() override {
    if (const cuda::DeviceCount found = cuda::count_devices(); found.devices == 0) {
      GTEST_SKIP() << "no CUDA device: " << found.why_none;
    }
  }
};

TEST_P(OnDevice, KernelsComputeWhatTheirOpsDefine) {
  const auto& [row, precision] = GetParam();
  cuda::CudaDevice device;
  KernelTable table;
  layers::cuda::add_kernels(
      table, std::make_shared<Libraries>(
                 machine_of(device),
                 layers::cuda::LibraryOptions{.strict_f32 = precision == Precision::strict}, device,
                 std::nullopt));
  const Backend backend{.name = "cuda",
                        .table = on_device(table, device),
                        .image = Layout::nhwc,
                        .compute = compute_of(precision)};
  const BuiltCase built = build(row, backend.compute);
  Interpreter values(*built.graph);
  for (const Node& node : built.graph->nodes()) {
    const Subject subject(values, node);
    const auto run = check_node(backend, subject, tolerance_of(precision, row));
    EXPECT_TRUE(run || may_be_missing(*built.graph, node)) << "no kernel for " << node.op->name();
    if (run) {
      check_pitched(backend, subject, *run, tolerance_of(precision, row));
    }
    values.adopt(node, views_of(subject.expected.after), views_of(subject.expected.out));
  }
}

std::vector<Case> cases_of(bool heavy) {
  std::vector<Case> result = all_cases();
  std::erase_if(result, [=](const Case& row) { return (row.weight == Weight::heavy) != heavy; });
  return result;
}

std::string test_name(const testing::TestParamInfo<OnDevice::ParamType>& info) {
  constexpr std::array names{"fp32_strict", "tf32", "fp16", "bf16"};
  std::string name = std::get<0>(info.param).name + "_" +
                     names.at(static_cast<std::size_t>(std::get<1>(info.param)));
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

constexpr auto every_precision = [] {
  return testing::Values(Precision::strict, Precision::tf32, Precision::f16, Precision::bf16);
};

TEST(Device, DescribesItselfAsPlansNeedIt) {
  if (const cuda::DeviceCount found = cuda::count_devices(); found.devices == 0) {
    GTEST_SKIP() << "no CUDA device: " << found.why_none;
  }
  const cuda::CudaDevice device;
  const std::string json = layers::cuda::device_json(0);
  EXPECT_NE(json.find(device.name()), std::string::npos) << json;
  EXPECT_NO_THROW(layers::cuda::Target::described(json));
}

INSTANTIATE_TEST_SUITE_P(Cuda, OnDevice,
                         testing::Combine(testing::ValuesIn(cases_of(false)), every_precision()),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Slow, OnDevice,
                         testing::Combine(testing::ValuesIn(cases_of(true)), every_precision()),
                         test_name);

}  // namespace
}  // namespace cnn::tests
