#include "bench/all_reduce/benchmark.h"

#include <cmath>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "bench/all_reduce/table.h"
#include "bench/flags/json.h"
#include "bench/machine/cpu_backend.h"
#include "bench/run/interruption.h"
#include "data/catalog.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

Config two_ranks() {
  Config config;
  config.device = DeviceKind::cpu;
  config.data.set = &data::find("cifar10");
  config.model.name = "resnet20";
  config.variable_update = VariableUpdate::replicated;
  config.num_gpus = 2;
  config.comm.calibrate = LinkCalibration::off;
  config.size.length.batches = 21;
  config.size.warm_up_batches = 1;
  return config;
}

struct Said {
  int status = -1;
  std::string out, err;
  std::optional<int> ended_by;
};

// signal: one that comes at the start.
Said reduce(const Config& config, const ReduceOptions& options, std::optional<int> signal = {}) {
  const std::vector<BackendKind> kinds{cpu_backend()};
  Said said;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    Console console;
    Interruption interruption(console);
    if (signal) {
      std::raise(*signal);
    }
    said.status =
        run_reductions({config, options, console, interruption}, make_backend(config, kinds));
    said.ended_by = interruption.signal();
  } catch (...) {
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    throw;
  }
  said.out = testing::internal::GetCapturedStdout();
  said.err = testing::internal::GetCapturedStderr();
  return said;
}

TEST(AllReduceBenchmark, PrintsTheOriginalsLines) {
  const Said said = reduce(two_ranks(), {});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, ContainsRegex("Building all-reduce ops\n"
                                      "Done building all-reduce ops\n"
                                      "Running warmup\n"
                                      "Running all-reduce ops\n"
                                      "Iteration: 10. Average time per step so far: 0.[0-9]{9}\n"
                                      "Iteration: 20. Average time per step so far: 0.[0-9]{9}\n"
                                      "Average time per step: 0.[0-9]{9}\n"));
}

// The original's other case: eight devices, copies by a hierarchy, eight packs.
TEST(AllReduceBenchmark, EndsWithTheAverageOfEightDevices) {
  Config config = two_ranks();
  config.num_gpus = 8;
  config.size.length.batches = 10;
  config.comm.hierarchical_copy = true;
  config.comm.repacking = 8;
  const Said said = reduce(config, {.per_step = 1});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, ContainsRegex("\nAverage time per step: [0-9.]+\n$"));
}

TEST(AllReduceBenchmark, PrintsATableAndChecksEverySum) {
  const tests::TemporaryFolder folder;
  Config config = two_ranks();
  config.num_gpus = 3;
  const Said said = reduce(config, {.least = 4096,
                                    .most = 16384,
                                    .factor = 4,
                                    .iterations = 3,
                                    .warm_up = 1,
                                    .json = folder / "rows.json"});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, ContainsRegex("bytes +count +type +op +algo +dims"));
  EXPECT_THAT(said.out, ContainsRegex("\n +4096 +1024 float sum"));
  EXPECT_THAT(said.out, ContainsRegex("\n +16384 +4096 float sum"));
  EXPECT_THAT(said.out, ContainsRegex("# avg busbw [0-9.]+  worst distance [0-9.]+  errors 0\n"));
  const auto rows = Json::parse(tests::read_file(folder / "rows.json"));
  EXPECT_EQ(rows.at("ranks"), 3);
  EXPECT_EQ(rows.at("rows").size(), 2U);
  EXPECT_EQ(rows.at("rows")[1].at("error"), 0);
}

TEST(AllReduceBenchmark, EndsWhenItIsAskedTo) {
  for (const ReduceOptions& options :
       {ReduceOptions{}, ReduceOptions{.least = 4096, .iterations = 1'000'000'000}}) {
    const Said said = reduce(two_ranks(), options, SIGTERM);
    EXPECT_EQ(said.status, 0) << said.err;
    EXPECT_EQ(said.ended_by, SIGTERM);
    EXPECT_THAT(said.out, testing::Not(HasSubstr("verage")));
  }
  EXPECT_EQ(reduce(two_ranks(), {.least = 64, .iterations = 1}).ended_by, std::nullopt);
}

// In whole numbers every algorithm, wire and order gives the exact sum.
TEST(AllReduceBenchmark, IsRightByEveryAlgorithmOfASpec) {
  Config config = two_ranks();
  const ReduceOptions options{.least = 40'000, .iterations = 1, .warm_up = 0, .copies = false};
  for (const char* spec : {"xring", "xring#2", "pscpu", "pscpu#2", "collective#2", "rd", "hd",
                           "tree", "shm%3", "direct%4", "rd:9k:direct"}) {
    config.comm.spec = spec;
    const Said said = reduce(config, options);
    EXPECT_EQ(said.status, 0) << spec << said.out << said.err;
  }
  config.comm.spec.reset();
  config.comm.wire = CommWire::bf16;
  EXPECT_THAT(reduce(config, options).out, HasSubstr(" bf16 "));
}

TEST(AllReduceBenchmark, ReducesTheGradientsOfTheModel) {
  const std::vector<BackendKind> kinds{cpu_backend()};
  Config config = two_ranks();
  const Backend backend = make_backend(config, kinds);
  const std::vector<std::size_t> buckets = gradient_buckets(config, backend);
  const std::size_t all = std::accumulate(buckets.begin(), buckets.end(), std::size_t{0});
  EXPECT_GT(all, 200'000U);
  config.comm.overlap = false;
  EXPECT_EQ(gradient_buckets(config, backend), std::vector<std::size_t>{all});
  config.comm.overlap = true;
  config.comm.spec = "xring";
  config.comm.small_bytes = 1;
  EXPECT_GT(gradient_buckets(config, backend).size(), 40U);
}

TEST(ReduceTable, ComputesBandwidthsAndDistance) {
  const ReduceRow row{.bytes = 1000,
                      .by = {.algorithm = &allreduce::find("direct")},
                      .time = {.least = 1e-6, .median = 2e-6},
                      .bound = 1e-6,
                      .error = 0};
  EXPECT_EQ(algorithm_bandwidth(row), 5e8);
  EXPECT_EQ(bus_bandwidth(row, 4), 7.5e8);
  EXPECT_EQ(distance(row), 2);
  EXPECT_FALSE(row.wrong());
  ReduceRow wrong = row;
  wrong.error = std::nan("");
  EXPECT_TRUE(wrong.wrong());
  EXPECT_THAT(table_line(wrong, 4), HasSubstr("WRONG"));
  EXPECT_EQ(table_end({row, wrong}, 4), "# avg busbw 0.75  worst distance 2.00  errors 1");
  EXPECT_EQ(timing_of({3, 1, 2, 10}).median, 2.5);
}

}  // namespace
}  // namespace cnn::bench
