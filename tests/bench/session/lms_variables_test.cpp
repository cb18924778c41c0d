// Checks that training with the largest variables on the host equals training without, bit for bit,
// within budgets that are below the floor of all variables on the device. The device has guard
// pages, copies are delayed at random and free bytes are filled with NaN.

#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include "bench/session/session.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"
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

// Device memory halfway between the floors with variables on the device and on the host. The
// floors depend on the processor: some kernels convert the weights on the device.
struct Tight {
  std::string rule;

  Words flags(const Words& more) const {
    return network(with({"--optimizer=" + rule, "--lms", "--lms_size_threshold=1"}, more));
  }
  std::size_t bytes() const {
    const std::size_t on_device = floor("off"), on_host = floor("on");
    EXPECT_LT(on_host, on_device) << rule;
    return on_host + (on_device - on_host) / 2;
  }

 private:
  std::size_t floor(const std::string& variables) const {
    const std::size_t need =
        DeviceRun(network({"--optimizer=" + rule}), enough).session().memory().total();
    DeviceRun run(flags({"--lms_variables=" + variables}), need - 64);
    return run.session().lms()->floor;
  }
};
const std::vector<Tight>& all_tight() {
  static const std::vector<Tight> all{{"sgd"}, {"momentum"}, {"adam"}};
  return all;
}

TEST(LmsVariables, OnTheHostKeepEveryBitNearTheFloor) {
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
  for (const Tight& tight : all_tight()) {
    const std::size_t bytes = tight.bytes();
    EXPECT_FALSE(fits(tight.flags({"--lms_variables=off"}), bytes)) << tight.rule;
    DeviceRun below(tight.flags({}), bytes);
    EXPECT_GT(below.session().memory().host_variables, std::size_t{12} << 20U) << tight.rule;
    const LmsReport& report = *below.session().lms();
    EXPECT_LE(report.floor, aligned(report.peak)) << "floors are multiples of the alignment";
    EXPECT_LE(report.lower_bound_seconds, report.predicted_seconds);
    DeviceRun above(tight.flags({}), bytes + (std::size_t{14} << 20U));
    EXPECT_EQ(above.session().memory().host_variables, 0U) << tight.rule;
  }
}

// Slices of dense layers change the order of sums: a tight budget has the bits of an ample one.
TEST(LmsVariables, InSlicesOfDenseLayersKeepEveryBitNearTheFloor) {
  const Words sliced{"--optimizer=momentum", "--lms_dense_slices=4", "--lms_verify"};
  const TrainedWeights ample = train(on_host(sliced), enough);
  const auto floor_of = [](const Words& flags) {
    const std::size_t need = DeviceRun(on_host(flags), enough).session().memory().total();
    DeviceRun run(on_host(flags), need - 64);
    return run.session().lms()->floor;
  };
  const std::size_t floor = floor_of(sliced);
  EXPECT_LT(floor + (std::size_t{6} << 20U), floor_of({"--optimizer=momentum"}));
  const TrainedWeights tight = train(on_host(sliced), aligned(floor + floor / 64), 5);
  EXPECT_GT(tight.host_variables, std::size_t{12} << 20U);
  EXPECT_EQ(tight.losses, ample.losses);
  EXPECT_TRUE(tight.checkpoint == ample.checkpoint);
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
