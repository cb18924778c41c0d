#include "bench/run/runner.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "bench/machine/cpu_backend.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

// Uses 100 J between two readings.
class Steady final : public TelemetrySource {
 public:
  TelemetryFacts facts() const override { return {.source = "steady"}; }
  Reading read() noexcept override { return {.joules = 100.0 * ++reads_}; }

 private:
  int reads_ = 0;
};

Backend steady_backend(const Config& config) {
  Backend backend = cpu_backend().make(config);
  backend.telemetry = std::make_unique<Steady>();
  return backend;
}

Backend silent_backend(const Config& config) {
  Backend backend = cpu_backend().make(config);
  backend.telemetry = nullptr;
  return backend;
}

struct Finished {
  ResultRecord record;
  std::string notes;
};

Finished run(Backend (*make)(const Config&), std::vector<std::string> more) {
  std::vector<std::string> words{"--device=cpu",   "--data_name=cifar10",    "--model=trivial",
                                 "--batch_size=2", "--num_warmup_batches=1", "--num_batches=4"};
  words.insert(words.end(), more.begin(), more.end());
  const Config config = parse_flags(words, {}).config;
  const std::array<BackendKind, 1> kinds{{{.device = "cpu", .missing = "", .make = make}}};
  Finished finished;
  Console console;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run_benchmark(config, kinds, console, finished.record, std::chrono::steady_clock::now());
  testing::internal::GetCapturedStdout();
  finished.notes = testing::internal::GetCapturedStderr();
  return finished;
}

TEST(Run, TellsTheEnergyOfItsTimedSteps) {
  const Finished finished = run(steady_backend, {});
  const Telemetry& telemetry = finished.record.telemetry.value();
  EXPECT_EQ(telemetry.facts.source, "steady");
  EXPECT_GE(telemetry.samples, 2);
  EXPECT_EQ(telemetry.joules, 100.0 * static_cast<double>(telemetry.samples - 1));
  EXPECT_EQ(telemetry.images_per_joule, 4 * 2 / *telemetry.joules);
  double steps = 0;
  for (const ResultStep& step : finished.record.steps) {
    steps += step.seconds;
  }
  EXPECT_GE(telemetry.seconds, steps);
  EXPECT_NE(finished.notes.find("\ntelemetry: "), std::string::npos) << finished.notes;
  EXPECT_NE(finished.notes.find(" images per joule\n"), std::string::npos) << finished.notes;
}

// Two readings for each stretch between checkpoints.
TEST(Run, TellsNothingOfItsCheckpoints) {
  const tests::TemporaryFolder folder;
  const Finished finished =
      run(steady_backend, {"--train_dir=" + folder.path().string(), "--save_model_steps=1"});
  const Telemetry& telemetry = finished.record.telemetry.value();
  EXPECT_GE(telemetry.samples, 2 * 4);
  EXPECT_EQ(telemetry.joules, 100.0 * static_cast<double>(telemetry.samples - 5));
}

TEST(Run, SaysNothingOfWhatNothingTells) {
  const Finished finished = run(silent_backend, {});
  EXPECT_FALSE(finished.record.telemetry);
  EXPECT_EQ(finished.notes.find("telemetry"), std::string::npos);
}

}  // namespace
}  // namespace cnn::bench
