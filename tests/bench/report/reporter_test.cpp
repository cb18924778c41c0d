#include "bench/report/reporter.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

namespace cnn::bench {
namespace {

using testing::Contains;
using testing::ElementsAre;

Header example_header() {
  const Config config{.data = {.set = &data::find("imagenet")}};
  Header header = header_of(config);
  header.version = "0.1";
  header.model = "resnet50";
  header.global_batch = 128;
  header.per_device_batch = 64;
  header.length = {.batches = 100, .epochs = 0.00999};
  header.devices = {"/gpu:0", "/gpu:1"};
  return header;
}

TEST(Header, IsTheOriginalsButForTheFirstLine) {
  EXPECT_THAT(
      header_lines(example_header()),
      ElementsAre("Program:     cnn_benchmarks 0.1", "Model:       resnet50",
                  "Dataset:     imagenet (synthetic)", "Mode:        training",
                  "SingleSess:  False", "Batch size:  128 global", "             64 per device",
                  "Num batches: 100", "Num epochs:  0.01", "Devices:     ['/gpu:0', '/gpu:1']",
                  "NUMA bind:   False", "Data format: NCHW", "Optimizer:   sgd",
                  "Variables:   parameter_server", "=========="));
}

TEST(Header, HasLinesThatDependOnFlags) {
  Header header = example_header();
  header.synthetic = false;
  header.batch_group_size = 4;
  header.rewriter_config = "off";
  header.all_reduce = "xring#2";
  header.sync = true;
  header.staged_vars = true;
  header.horovod_device = "gpu";
  EXPECT_THAT(
      header_lines(header),
      ElementsAre("Program:     cnn_benchmarks 0.1", "Model:       resnet50",
                  "Dataset:     imagenet", "Mode:        training", "SingleSess:  False",
                  "Batch size:  128 global", "             64 per device",
                  "             4 batches per prepocessing group", "Num batches: 100",
                  "Num epochs:  0.01", "Devices:     ['/gpu:0', '/gpu:1']", "NUMA bind:   False",
                  "Data format: NCHW", "RewriterConfig: off", "Optimizer:   sgd",
                  "Variables:   parameter_server", "AllReduce:   xring#2", "Sync:        True",
                  "Staged vars: True", "Horovod on:  gpu", "=========="));
}

TEST(Header, NamesTheReductionOfReplicatedVariables) {
  Config config;
  config.variable_update = VariableUpdate::replicated;
  EXPECT_THAT(header_lines(header_of(config)), Contains("AllReduce:   None"));
  config.variable_update = VariableUpdate::independent;
  EXPECT_EQ(header_of(config).all_reduce, std::nullopt);
}

TEST(Header, NamesTheMode) {
  Config config;
  config.mode.forward_only = true;
  EXPECT_THAT(header_lines(header_of(config)), Contains("Mode:        forward only"));
}

TEST(StepLines, AreTheOriginals) {
  EXPECT_EQ(title_line("total_loss", false), "Step\tImg/sec\ttotal_loss");
  EXPECT_EQ(title_line("base_loss", true),
            "Step\tImg/sec\tbase_loss\ttop_1_accuracy\ttop_5_accuracy");
  const Speed speed{.mean = 42.10526, .uncertainty = 14.07303, .jitter = 18.5325};
  EXPECT_EQ(step_line(10, speed, 7.5931), "10\timages/sec: 42.1 +/- 14.1 (jitter = 18.5)\t7.593");
  EXPECT_EQ(step_line(1, speed, 0, Accuracy{0.5, 1}),
            "1\timages/sec: 42.1 +/- 14.1 (jitter = 18.5)\t0.000\t0.500\t1.000");
}

TEST(StepLines, PrintLossesThatAreNoNumbers) {
  const Speed speed{.mean = 1};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(step_line(1, speed, -nan), "1\timages/sec: 1.0 +/- 0.0 (jitter = 0.0)\tnan");
  EXPECT_EQ(step_line(1, speed, inf), "1\timages/sec: 1.0 +/- 0.0 (jitter = 0.0)\tinf");
  EXPECT_EQ(step_line(1, speed, -inf), "1\timages/sec: 1.0 +/- 0.0 (jitter = 0.0)\t-inf");
}

TEST(StepLines, AppearAtTheFirstStepAndAtMultiples) {
  EXPECT_TRUE(is_displayed(1, 10));
  EXPECT_FALSE(is_displayed(9, 10));
  EXPECT_TRUE(is_displayed(20, 10));
  EXPECT_FALSE(is_displayed_in_eval(1, 10));
  EXPECT_TRUE(is_displayed_in_eval(10, 10));
  EXPECT_TRUE(is_displayed_in_eval(1, 1));
}

TEST(EndLines, AreTheOriginals) {
  EXPECT_THAT(total_lines(1234.567),
              ElementsAre("----------------------------------------------------------------",
                          "total images/sec: 1234.57",
                          "----------------------------------------------------------------"));
}

TEST(EvalLines, AreTheOriginals) {
  EXPECT_EQ(eval_step_line(20, 99.96), "20\t100.0 examples/sec");
  EXPECT_EQ(accuracy_line({0.12345, 0.5}, 6400),
            "Accuracy @ 1 = 0.1235 Accuracy @ 5 = 0.5000 [6400 examples]");
  EXPECT_EQ(loaded_line("/d/model.ckpt-110.safetensors"),
            "Successfully loaded model from /d/model.ckpt-110.safetensors.");
  EXPECT_EQ(not_found_line("/d"), "Checkpoint not found in /d");
  EXPECT_EQ(eval_start_line(12), "Running evaluation at global_step 12");
  EXPECT_EQ(final_eval_line(17), "Running final evaluation at global_step 17");
  EXPECT_EQ(early_stop_line(0.4), "Stopping, as eval accuracy at least 0.4 was reached");
  EXPECT_EQ(early_stop_line(1), "Stopping, as eval accuracy at least 1.0 was reached");
}

TEST(OtherLines, AreTheOriginals) {
  EXPECT_EQ(warm_up_line(8), "Round up warm up steps to 8 to match batch_group_size");
  EXPECT_EQ(trace_line("t.json"), "Dumping trace to t.json");
}

TEST(PercentilesLine, HasMillisecondsAndTheNumberOfSteps) {
  EXPECT_EQ(percentiles_line(std::vector<double>{0.1, 0.3, 0.2}),
            "step time: p50 200.00 ms, p90 280.00 ms, p99 298.00 ms of 3 steps");
}

TEST(Header, StatesTheDurationOfARunByTimeInsteadOfBatches) {
  Header header;
  header.min_time = 2.5;
  const std::vector<std::string> lines = header_lines(header);
  EXPECT_NE(std::ranges::find(lines, "Num batches: as many as take 2.5 s"), lines.end());
  for (const std::string& line : lines) {
    EXPECT_FALSE(line.starts_with("Num epochs:")) << line;
  }
}

TEST(ProgressLine, EstimatesTheTimeLeft) {
  EXPECT_EQ(progress_line(
                {.done = 10, .total = 100, .average_seconds = 50.5, .images_per_second = 12.34}),
            "step 10 of 100, 12.3 images/sec, 1:15:45 left");
  EXPECT_EQ(
      progress_line({.done = 100, .total = 100, .average_seconds = 1, .images_per_second = 1}),
      "step 100 of 100, 1.0 images/sec, 0:00:00 left");
}

}  // namespace
}  // namespace cnn::bench
