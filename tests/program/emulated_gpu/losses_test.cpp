// Compares the losses of all networks on the emulated GPU with the CPU's recorded losses in
// tests/losses, in each precision and at each level of fusion.

#include <algorithm>
#include <array>
#include <cctype>
#include <gtest/gtest.h>
#include <ostream>
#include <string>
#include <vector>

#include "tests/program/emulated_gpu/emulated_program.h"

namespace cnn::tests {
namespace {

struct Setting {
  std::string curve, precision, fusion;
};
void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.curve << ' ' << setting.precision << ' ' << setting.fusion;
}

class EmulatedGpuLosses : public testing::TestWithParam<Setting> {};

TEST_P(EmulatedGpuLosses, AreTheRecordedOnesOfTheCpu) {
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  const auto& [curve, precision, fusion] = GetParam();
  const Finished run = run_and(
      {"/usr/bin/env", "python3", CNN_SOURCE_DIR "/scripts/losses/compare.py",
       std::string("--program=") + CNN_PROGRAM, "--device=gpu", "--jobs=1", "--steps=2",
       "--timeout_s=3000", "--models=" + curve, "--precision=" + precision, "--fusion=" + fusion},
      [](const Finished&) { return false; }, [] {});
  EXPECT_EQ(run.status, 0) << run.out << run.err;
}

std::string test_name(const testing::TestParamInfo<Setting>& info) {
  std::string name = info.param.curve + "_" + info.param.precision + "_" + info.param.fusion;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// Only fp16 fuses batch norms into convolutions.
constexpr std::array<std::array<const char*, 2>, 9> levels{{{"fp32_strict", "none"},
                                                            {"fp32_strict", "bn"},
                                                            {"fp32", "none"},
                                                            {"fp32", "bn"},
                                                            {"fp16", "none"},
                                                            {"fp16", "bn"},
                                                            {"fp16", "conv"},
                                                            {"bf16", "none"},
                                                            {"bf16", "bn"}}};

// Returns every pair of precision and fusion once, on networks that take a second.
std::vector<Setting> pairs() {
  constexpr std::array quick{"resnet20", "cifar10_full", "resnet20_v2"};
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    settings.push_back({quick.at(i % quick.size()), levels.at(i)[0], levels.at(i)[1]});
  }
  return settings;
}

std::vector<Setting> all_settings(const std::vector<std::string>& curves) {
  std::vector<Setting> settings;
  for (const std::string& curve : curves) {
    for (const auto& [precision, fusion] : levels) {
      settings.push_back({curve, precision, fusion});
    }
  }
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Quick, EmulatedGpuLosses, testing::ValuesIn(pairs()), test_name);
INSTANTIATE_TEST_SUITE_P(
    SlowSmall, EmulatedGpuLosses,
    testing::ValuesIn(all_settings({"trivial_mnist", "trivial_cifar", "trivial", "lenet_mnist",
                                    "lenet", "mnist_deep", "cifar10_full", "alexnet_cifar",
                                    "resnet20", "resnet20_v2"})),
    test_name);
// One step takes up to half a minute.
INSTANTIATE_TEST_SUITE_P(
    SlowLarge, EmulatedGpuLosses,
    testing::ValuesIn(all_settings({"densenet40_k12", "mobilenet", "googlenet", "resnet50",
                                    "resnet50_v1.5", "resnet50_v2", "vgg11", "alexnet", "overfeat",
                                    "inception3", "inception4", "official_resnet18"})),
    test_name);

}  // namespace
}  // namespace cnn::tests
