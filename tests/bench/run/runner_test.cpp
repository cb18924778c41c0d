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

// A telemetry source that uses 100 J between two readings.
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
  Json result;
  std::string notes;
};

Finished run(Backend (*make)(const Config&), std::vector<std::string> more) {
  std::vector<std::string> words{"--device=cpu",        "--data_name=cifar10",    "--model=trivial",
                                 "--batch_size=2",      "--num_warmup_batches=1", "--num_batches=4",
                                 "--nomeasure_ceilings"};
  words.insert(words.end(), more.begin(), more.end());
  const Config config = parse_flags(words, {}).config;
  const std::array<BackendKind, 1> kinds{{{.device = "cpu", .make = make}}};
  const RunIdentity identity{.version = "0.1"};
  Finished finished{.result = new_result(identity), .notes = ""};
  Console console;
  Interruption interruption(console);
  ResultFile file(std::nullopt);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run_benchmark({.config = config,
                 .backends = kinds,
                 .identity = identity,
                 .process_start = std::chrono::steady_clock::now(),
                 .interruption = interruption},
                console, finished.result, file);
  testing::internal::GetCapturedStdout();
  finished.notes = testing::internal::GetCapturedStderr();
  return finished;
}

TEST(Run, TellsTheEnergyOfItsTimedSteps) {
  const Finished finished = run(steady_backend, {});
  const Json& telemetry = finished.result["telemetry"];
  EXPECT_EQ(telemetry["source"], "steady");
  EXPECT_GE(telemetry["samples"], 2);
  const double joules = telemetry["joules"];
  EXPECT_EQ(joules, 100 * (telemetry["samples"].get<double>() - 1));
  EXPECT_EQ(telemetry["images_per_joule"], 4 * 2 / joules);
  double steps = 0;
  for (const Json& step : finished.result["steps"]) {
    steps += step["seconds"].get<double>();
  }
  EXPECT_GE(telemetry["seconds"], steps);
  EXPECT_NE(finished.notes.find("\ntelemetry: "), std::string::npos) << finished.notes;
  EXPECT_NE(finished.notes.find(" images per joule\n"), std::string::npos) << finished.notes;
}

Backend backend_with_memory_apart(const Config& config) {
  Backend backend = silent_backend(config);
  backend.memory.host = backend.memory.device;
  return backend;
}

std::string big_endian(int number) {
  return {0, 0, static_cast<char>(number / 256), static_cast<char>(number % 256)};
}

// Writes MNIST files with `examples` examples that all differ.
void write_mnist(const tests::TemporaryFolder& folder, const std::string& part, int examples) {
  std::string images = big_endian(0x803) + big_endian(examples) + big_endian(28) + big_endian(28);
  std::string labels = big_endian(0x801) + big_endian(examples);
  for (int i = 0; i < examples; ++i) {
    images += std::string(std::size_t{28} * 28, static_cast<char>(5 * i));
    labels += static_cast<char>(i % 10);
  }
  folder.write(part + "-images-idx3-ubyte", images);
  folder.write(part + "-labels-idx1-ubyte", labels);
}

TEST(Run, StagesRealBatchesOnADeviceWithMemoryOfItsOwnToTheSameBits) {
  const tests::TemporaryFolder folder;
  write_mnist(folder, "train", 20);
  write_mnist(folder, "t10k", 7);
  const std::vector<std::string> flags{
      "--data_name=mnist",    "--data_dir=" + folder.path().string(),
      "--num_batches=12",     "--eval_during_training_every_n_steps=5",
      "--num_eval_batches=3", "--eval_batch_size=3"};
  Json here = run(silent_backend, flags).result;
  Json apart = run(backend_with_memory_apart, flags).result;
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(here["steps"][i]["loss"], apart["steps"][i]["loss"]) << i;
  }
  for (const char* const value : {"top_1", "base_loss"}) {
    EXPECT_EQ(here["evaluation"][1][value], apart["evaluation"][1][value]);
  }
  constexpr std::int64_t staged =
      std::int64_t{2} * (1600 + 64 + 2368 + 64);  // images and labels of 2 examples and of 3
  const auto more = [&](const char* section, const char* value) {
    return apart[section][value].get<std::int64_t>() - here[section][value].get<std::int64_t>();
  };
  EXPECT_EQ(more("plan", "arena_bytes"), staged);
  EXPECT_EQ(more("memory", "arena_peak_bytes"), staged);
}

// Each stretch between checkpoints has a reading at both ends.
TEST(Run, TellsNothingOfItsCheckpoints) {
  const tests::TemporaryFolder folder;
  const Finished finished =
      run(steady_backend, {"--train_dir=" + folder.path().string(), "--save_model_steps=1"});
  const Json& telemetry = finished.result["telemetry"];
  EXPECT_GE(telemetry["samples"], 2 * 4);
  EXPECT_EQ(telemetry["joules"], 100 * (telemetry["samples"].get<double>() - 5));
}

TEST(Run, SaysNothingOfWhatNothingTells) {
  const Finished finished = run(silent_backend, {});
  EXPECT_FALSE(finished.result.contains("telemetry"));
  EXPECT_EQ(finished.notes.find("telemetry"), std::string::npos);
}

TEST(Run, GivesEachSectionOfTheResult) {
  const Finished finished = run(silent_backend, {});
  const auto keys = [&](const char* section) {
    std::string names;
    for (const auto& item : finished.result[section].items()) {
      names += item.key() + " ";
    }
    return names;
  };
  EXPECT_EQ(keys("model"),
            "name data_set image_size classes trainable_parameters trainable_tensors "
            "forward_macs ");
  EXPECT_EQ(keys("plan"),
            "layout precision fusion arena_bytes variable_bytes lower_bound_bytes host_bytes "
            "workspace_bytes predicted_step_seconds lms ");
  EXPECT_EQ(keys("memory"), "arena_peak_bytes process_peak_bytes ");
  EXPECT_EQ(keys("start"), "process_to_first_step build plan warm_up ");
  EXPECT_EQ(finished.result["warm_up_losses"].size(), 1U);
  EXPECT_EQ(finished.result["steps"].size(), 4U);
}

}  // namespace
}  // namespace cnn::bench
