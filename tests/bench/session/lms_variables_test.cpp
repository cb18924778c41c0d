// Checks that training with the largest variables on the host equals training without, bit for bit,
// within budgets that are below the floor of all variables on the device. The device has guard
// pages, copies are delayed at random and free bytes are filled with NaN.

#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include "bench/session/session.h"
#include "runtime/error.h"
#include "tests/bench/session/device_run.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using tests::DeviceRun;
using tests::with;
using tests::Words;

constexpr std::size_t enough = std::size_t{64} << 20U;
constexpr int trained_steps = 2;

// The weights of its first dense layer take 12.25 MiB, and its other variables 0.3 MiB.
Words network(const Words& more) {
  return with({"--data_name=mnist", "--model=mnist_deep", "--batch_size=8"}, more);
}
Words on_host(const Words& more) {
  return network(with({"--lms", "--lms_variables=on", "--lms_size_threshold=1"}, more));
}

bool fits(const Words& flags, std::size_t bytes) {
  try {
    const DeviceRun run(flags, bytes);
    return true;
  } catch (const DoesNotFit&) {
    return false;
  }
}

struct TrainedWeights {
  std::vector<double> losses;
  std::string checkpoint;
  std::size_t host_variables = 0;
};

TrainedWeights train(const Words& flags, std::size_t bytes, unsigned seed = 0) {
  const tests::TemporaryFolder folder;
  const CopyJitter jitter{.longest = std::chrono::microseconds(seed > 0 ? 200 : 0), .seed = seed};
  DeviceRun run(with(flags, {"--train_dir=" + folder.path().string()}), bytes, jitter);
  TrainedWeights trained{.losses = run.train(trained_steps), .checkpoint = {}};
  EXPECT_LE(run.session().measured_peak_bytes(), bytes);
  trained.host_variables = run.session().memory().host_variables;
  trained.checkpoint = tests::read_file(
      folder.path() / ("model.ckpt-" + std::to_string(trained_steps) + ".safetensors"));
  EXPECT_FALSE(trained.checkpoint.empty());
  return trained;
}

// Device memory between the floors with and without variables on the host, which are about 25 and
// 21 MiB for sgd, 38 and 29 for momentum, 50 and 37 for adam.
struct Tight {
  std::string rule;
  std::size_t mib = 0;

  std::size_t bytes() const { return mib << 20U; }
  Words flags(const Words& more) const {
    return network(with({"--optimizer=" + rule, "--lms", "--lms_size_threshold=1"}, more));
  }
};
const std::vector<Tight>& all_tight() {
  static const std::vector<Tight> all{{"sgd", 22}, {"momentum", 30}, {"adam", 38}};
  return all;
}

TEST(LmsVariables, OnTheHostKeepEveryBitNearTheFloor) {
  if (__builtin_cpu_supports("avx512f") == 0) {
    GTEST_SKIP() << "with AVX2 alone, dense layers convert their weights on the device";
  }
  unsigned seed = 0;
  for (const Tight& tight : all_tight()) {
    const TrainedWeights whole = train(network({"--optimizer=" + tight.rule}), enough);
    const char* const where = ++seed % 2 == 0 ? "on" : "auto";
    const Words variables{"--lms_verify", "--lms_variables=" + std::string(where)};
    const TrainedWeights hosted = train(tight.flags(variables), tight.bytes(), seed);
    EXPECT_GT(hosted.host_variables, std::size_t{12} << 20U) << tight.rule;
    EXPECT_EQ(hosted.losses, whole.losses) << tight.rule;
    EXPECT_TRUE(hosted.checkpoint == whole.checkpoint) << tight.rule;
  }
}

TEST(LmsVariables, OfAutoAreOnTheHostOnlyWhereNothingElseFits) {
  if (__builtin_cpu_supports("avx512f") == 0) {
    GTEST_SKIP() << "with AVX2 alone, dense layers convert their weights on the device";
  }
  for (const Tight& tight : all_tight()) {
    EXPECT_FALSE(fits(tight.flags({"--lms_variables=off"}), tight.bytes())) << tight.rule;
    DeviceRun below(tight.flags({}), tight.bytes());
    EXPECT_GT(below.session().memory().host_variables, std::size_t{12} << 20U) << tight.rule;
    const LmsReport& report = *below.session().lms();
    EXPECT_LE(report.floor, report.peak);
    EXPECT_LE(report.lower_bound_seconds, report.predicted_seconds);
    DeviceRun above(tight.flags({}), tight.bytes() + (std::size_t{14} << 20U));
    EXPECT_EQ(above.session().memory().host_variables, 0U) << tight.rule;
  }
}

// A checkpoint does not depend on where variables lie.
TEST(LmsVariables, ResumeOnTheHostWhatWasTrainedOnTheDevice) {
  const tests::TemporaryFolder folder;
  const Words dir{"--train_dir=" + folder.path().string(), "--optimizer=adam"};
  const Words four_steps{"--train_dir=" + (folder.path() / "whole").string(), "--optimizer=adam"};
  const std::vector<double> whole = DeviceRun(network(four_steps), enough).train(4);
  const std::vector<double> first = DeviceRun(network(dir), enough).train(2);
  const std::vector<double> second = DeviceRun(on_host(dir), enough).train(2);
  EXPECT_EQ(first, std::vector<double>(whole.begin(), whole.begin() + 2));
  EXPECT_EQ(second, std::vector<double>(whole.begin() + 2, whole.end()));
}

TEST(LmsVariables, AreSharedWithAnEvaluationDuringTraining) {
  const Words evaluates{"--eval_during_training_every_n_steps=1", "--num_eval_batches=1"};
  DeviceRun whole(network(evaluates), enough), hosted(on_host(evaluates), enough);
  EXPECT_EQ(whole.train(trained_steps), hosted.train(trained_steps));
  EXPECT_GT(hosted.session().memory().host_variables, 0U);
  EXPECT_EQ(whole.evaluate(), hosted.evaluate());
  EXPECT_EQ(whole.session().weights_hash(), hosted.session().weights_hash());
}

}  // namespace
}  // namespace cnn::bench
