// Tests the timing of cuDNN's engines on the emulated GPU and the cache that keeps the choices.

#include <cstddef>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

#include "tests/program/emulated_gpu/emulated_program.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(EmulatedGpuTuning, IsReadFromTheCacheByALaterRun) {
  const TemporaryFolder folder;
  const Words flags =
      small_resnet({"--num_batches=2", "--precision=fp16", "--plan_cache=" + (folder / "plans")});
  const Training tuned = train("gpu", with(flags, {"--tune"}));
  const std::string kept = read_file(folder / "plans");
  EXPECT_THAT(kept, HasSubstr("forward f16 x 2x16x16x16"));
  EXPECT_THAT(kept,
              testing::ContainsRegex("\nNVIDIA H100 80GB HBM3, driver 580.00 \\(emulated\\) for "
                                     "CUDA 1[0-9.]+, cuBLASLt [0-9]+\t"));
  EXPECT_FALSE(tuned.base.empty());
  const Training again = train("gpu", with(flags, {"--tune"}));
  EXPECT_EQ(again.base, tuned.base);
  EXPECT_TRUE(read_file(folder / "plans") == kept) << "no engine is timed again";
  EXPECT_EQ(train("gpu", flags).base, tuned.base);
}

// A user's cache serves all runs, and two of them may end at the same moment.
TEST(EmulatedGpuTuning, KeepsTheChoicesOfTwoProcessesAtOnceWhole) {
  const TemporaryFolder folder;
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  const std::string plans = folder / "plans";
  const std::string one = std::string(CNN_PROGRAM) +
                          " --device=gpu --nomeasure_ceilings --num_warmup_batches=0 "
                          "--num_batches=1 --data_name=cifar10 --model=resnet20 --image_size=16 "
                          "--precision=fp16 --tune --plan_cache=" +
                          plans + " --batch_size=";
  for (int round = 1; round <= 2; ++round) {
    const int first = 2 * round;
    const std::string command = one + std::to_string(first) + " & a=$!; " + one +
                                std::to_string(first + 1) + " & b=$!; wait $a && wait $b";
    const Finished both = run_and(
        {"/bin/sh", "-c", command}, [](const Finished&) { return false; }, [] {});
    ASSERT_EQ(both.status, 0) << both.err;
  }
  const std::string kept = read_file(plans);
  EXPECT_THAT(kept, AllOf(HasSubstr("x 2x16x16x16 "), HasSubstr("x 3x16x16x16 "),
                          HasSubstr("x 4x16x16x16 "), HasSubstr("x 5x16x16x16 ")));
}

// Returns flags of ResNet-20 in fp16 that fuses batch norms if that is faster, with a plan cache in
// the folder.
Words timed_layers(const TemporaryFolder& folder) {
  return small_resnet({"--num_batches=2", "--precision=fp16", "--fusion=conv",
                       "--plan_cache=" + (folder / "plans")});
}

// Overwrites the seconds of nodes in a plan cache, because measured times would come from the
// emulation.
void set_seconds(const std::string& file, const std::function<double(const std::string&)>& of) {
  std::istringstream lines(read_file(file));
  std::ofstream out(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t node = line.find("\tnode ");
    if (node == line.npos) {
      out << line << '\n';
    } else {
      const std::string key = line.substr(node + 6, line.find('\t', node + 1) - node - 6);
      out << line.substr(0, line.rfind('\t') + 1) << of(key) << '\n';
    }
  }
}

bool is_plain(const std::string& node) { return node.starts_with("batch_norm"); }
bool has_channels(const std::string& node, int channels) {
  return node.find("(f16[2, " + std::to_string(channels) + ", ") != node.npos;
}

TEST(EmulatedGpuTuning, RunsEachLayerInTheFormThatItsTimesSayIsFaster) {
  const TemporaryFolder folder;
  const Words flags = timed_layers(folder);
  const Training measured = train("gpu", with(flags, {"--tune"}));
  EXPECT_THAT(measured.run.err, HasSubstr(" nodes of fused and plain layers were timed in "));
  const std::string plans = folder / "plans";
  EXPECT_THAT(read_file(plans), AllOf(HasSubstr("\tnode fused_conv 3x3 stride 1x1"),
                                      HasSubstr("\tnode batch_norm relu ")));

  set_seconds(plans, [](const std::string& node) { return is_plain(node) ? 9 : 1; });
  const Training fused = train("gpu", flags);
  const double norms = fused.number("/plan/fusion/fused_norms");
  EXPECT_GT(norms, 9);
  EXPECT_EQ(fused.number("/plan/fusion/faster_plain_norms"), 0);

  set_seconds(plans, [](const std::string& node) {
    return is_plain(node) && has_channels(node, 32) ? 0.01 : is_plain(node) ? 9 : 1;
  });
  const Training mixed = train("gpu", flags);
  const double plain = mixed.number("/plan/fusion/faster_plain_norms");
  EXPECT_GT(plain, 0);
  EXPECT_EQ(mixed.number("/plan/fusion/fused_norms"), norms - plain);
  EXPECT_THAT(mixed.run.err, HasSubstr("since plain was measured to be faster"));
  ASSERT_EQ(mixed.base.size(), fused.base.size());
  for (std::size_t step = 0; step < fused.base.size(); ++step) {
    EXPECT_NEAR(mixed.base[step], fused.base[step], 2e-3 * fused.base[step]);
  }
  EXPECT_EQ(train("gpu", flags).base, mixed.base) << "equal times give equal bits";
}

TEST(EmulatedGpuTuning, FusesAllLayersWhereTheFasterFormsDoNotFit) {
  const TemporaryFolder folder;
  const Words flags = timed_layers(folder);
  train("gpu", with(flags, {"--tune"}));
  const std::string plans = folder / "plans";
  set_seconds(plans, [](const std::string& node) { return is_plain(node) ? 9 : 1; });
  const double small = train("gpu", flags).number("/plan/arena_bytes");
  set_seconds(plans, [](const std::string& node) { return is_plain(node) ? 0.01 : 1; });
  const Training plain = train("gpu", flags);
  const double large = plain.number("/plan/arena_bytes");
  ASSERT_GT(plain.number("/plan/fusion/faster_plain_norms"), 0);
  ASSERT_GT(large, small);
  const double device_bytes = plain.number("/machine/gpu/memory_bytes");
  const std::string part =
      "--gpu_memory_frac_for_testing=" + std::to_string((small + large) / 2 / device_bytes);
  const Training fused = train("gpu", with(flags, {part}));
  EXPECT_EQ(fused.number("/plan/arena_bytes"), small);
  EXPECT_EQ(fused.number("/plan/fusion/faster_plain_norms"), 0);
}

TEST(EmulatedGpuTuning, FusesTheLayersOfTheFirstDeviceOnTwoDevices) {
  const TemporaryFolder folder;
  const Environment devices("CNN_EMULATED_DEVICES", "2");
  const Words flags = with(timed_layers(folder),
                           {"--num_gpus=2", "--variable_update=replicated", "--comm_backend=ring"});
  train("gpu", with(flags, {"--tune"}));
  set_seconds(folder / "plans", [](const std::string& node) {
    return is_plain(node) && has_channels(node, 16) ? 0.01 : is_plain(node) ? 9 : 1;
  });
  const Training run = train("gpu", flags);
  EXPECT_GT(run.number("/plan/fusion/faster_plain_norms"), 0);
  EXPECT_GT(run.number("/plan/fusion/fused_norms"), 0);
}

}  // namespace
}  // namespace cnn::tests
