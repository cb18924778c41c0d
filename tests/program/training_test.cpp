#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

Words with(Words flags, const Words& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Returns flags of a small network on deterministic synthetic CIFAR-10, so that every line can be
// compared.
Words small_training() {
  return {"--device=cpu",     "--data_name=cifar10", "--model=trivial",
          "--batch_size=8",   "--display_every=1",   "--num_warmup_batches=0",
          "--weight_decay=0", "--tf_random_seed=7",  "--nomeasure_ceilings"};
}

TEST(Training, PrintsTheLinesOfTheOriginalAndNothingElse) {
  const Finished run = run_program({"--device=cpu", "--model=lenet", "--batch_size=4",
                                    "--num_batches=11", "--num_warmup_batches=1"});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::vector<std::string> patterns{
      "Program:     cnn_benchmarks [0-9]+\\.[0-9]+",
      "Model:       lenet5",
      "Dataset:     imagenet \\(synthetic\\)",
      "Mode:        training",
      "SingleSess:  False",
      "Batch size:  4 global",
      "             4 per device",
      "Num batches: 11",
      "Num epochs:  0\\.00",
      "Devices:     \\['/cpu:0'\\]",
      "NUMA bind:   False",
      "Data format: NCHW",
      "Optimizer:   sgd",
      "Variables:   parameter_server",
      "==========",
      "Generating training model",
      "Initializing graph",
      "Running warm up",
      "Done warm up",
      "Step\tImg/sec\ttotal_loss",
      "1\timages/sec: [0-9.]+ \\+/- 0\\.0 \\(jitter = 0\\.0\\)\t[0-9.]+",
      "10\timages/sec: [0-9.]+ \\+/- [0-9.]+ \\(jitter = [0-9.]+\\)\t[0-9.]+",
      "-{64}",
      "total images/sec: [0-9]+\\.[0-9]{2}",
      "-{64}"};
  const std::vector<std::string> lines = run.lines();
  ASSERT_EQ(lines.size(), patterns.size()) << run.out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(std::regex_match(lines[i], std::regex(patterns[i])))
        << lines[i] << " is not " << patterns[i];
  }
}

TEST(Training, AStepLineHasNineWordsAndElevenWithAccuracies) {
  const Finished plain = run_program(with(small_training(), {"--num_batches=3"}));
  ASSERT_EQ(plain.step_lines().size(), 3U) << plain.err;
  EXPECT_EQ(words_of(plain.step_lines().front()).size(), 9U);
  const Finished more =
      run_program(with(small_training(), {"--num_batches=3", "--print_training_accuracy"}));
  ASSERT_EQ(more.step_lines().size(), 3U) << more.err;
  EXPECT_EQ(words_of(more.step_lines().front()).size(), 11U);
}

TEST(Training, FixedLabelsCanBeLearnt) {
  const TemporaryFolder folder;
  const Finished run =
      run_program(with(small_training(), {"--num_batches=60", "--synthetic_labels=fixed",
                                          "--init_learning_rate=0.0001", "--model=alexnet",
                                          "--result_json=" + (folder / "r.json")}));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto result = nlohmann::json::parse(read_file(folder / "r.json"));
  const double first = result["steps"].front()["base_loss"];
  const double last = result["steps"].back()["base_loss"];
  EXPECT_LT(last, 0.7 * first);
}

TEST(Training, TheSameSeedGivesTheSameBits) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    const Finished run =
        run_program(with(small_training(), {"--num_batches=4", "--model=resnet20",
                                            std::string("--train_dir=") + (folder / name)}));
    ASSERT_EQ(run.status, 0) << run.err;
  }
  EXPECT_EQ(read_file(folder / "a/model.ckpt-4.safetensors"),
            read_file(folder / "b/model.ckpt-4.safetensors"));
}

TEST(Training, AResumedRunEndsWithTheBitsOfAnUninterruptedOne) {
  for (const char* optimizer : {"momentum", "adam"}) {
    const TemporaryFolder folder;
    const Words flags = with(small_training(), {"--model=resnet20", "--init_learning_rate=0.01",
                                                std::string("--optimizer=") + optimizer});
    ASSERT_EQ(
        run_program(with(flags, {"--num_batches=6", "--train_dir=" + (folder / "whole")})).status,
        0);
    for (const char* batches : {"--num_batches=3", "--num_batches=6"}) {
      ASSERT_EQ(run_program(with(flags, {batches, "--train_dir=" + (folder / "parts")})).status, 0);
    }
    EXPECT_EQ(read_file(folder / "whole/model.ckpt-6.safetensors"),
              read_file(folder / "parts/model.ckpt-6.safetensors"))
        << optimizer;
  }
}

TEST(Training, WarmUpStepsCountInTheGlobalStepOfAResumedRun) {
  const TemporaryFolder folder;
  const Words flags =
      with(small_training(), {"--num_warmup_batches=5", "--train_dir=" + (folder / "t")});
  EXPECT_EQ(run_program(with(flags, {"--num_batches=20"})).step_lines().size(), 20U);
  EXPECT_TRUE(std::filesystem::exists(folder / "t/model.ckpt-25.safetensors"));
  EXPECT_EQ(run_program(with(flags, {"--num_batches=40"})).step_lines().size(), 15U);
  EXPECT_TRUE(std::filesystem::exists(folder / "t/model.ckpt-45.safetensors"));
}

TEST(Training, ACheckpointPastTheEndTimesNothingAndSaysSo) {
  const TemporaryFolder folder;
  const Words flags = with(small_training(), {"--num_batches=3", "--train_dir=" + (folder / "t")});
  ASSERT_EQ(run_program(flags).status, 0);
  const Finished again = run_program(flags);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(again.step_lines().empty());
  EXPECT_NE(again.out.find("total images/sec: 0.00"), std::string::npos);
  EXPECT_NE(again.err.find("nothing was timed"), std::string::npos);
}

TEST(Training, KeepsTheNewestCheckpoints) {
  const TemporaryFolder folder;
  const Words flags = with(small_training(), {"--save_model_steps=2", "--max_ckpts_to_keep=3",
                                              "--train_dir=" + (folder / "t")});
  ASSERT_EQ(run_program(with(flags, {"--num_batches=10"})).status, 0);
  ASSERT_EQ(run_program(with(flags, {"--num_batches=20"})).status, 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "t")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{".lock", "checkpoint", "model.ckpt-16.safetensors",
                                      "model.ckpt-18.safetensors", "model.ckpt-20.safetensors"}));
}

TEST(Training, AKilledRunLeavesACheckpointThatLoads) {
  const TemporaryFolder folder;
  const Words flags = with(small_training(), {"--model=alexnet", "--save_model_steps=1",
                                              "--train_dir=" + (folder / "t")});
  ASSERT_EQ(run_program(with(flags, {"--num_batches=1"})).status, 0);
  for (const int milliseconds : {150, 250, 350, 450}) {
    run_and_kill(with(flags, {"--num_batches=100000"}), milliseconds);
    const Finished evaluation =
        run_program(with(small_training(), {"--model=alexnet", "--eval", "--num_eval_batches=1",
                                            "--train_dir=" + (folder / "t")}));
    ASSERT_EQ(evaluation.status, 0) << evaluation.err;
  }
}

TEST(Training, PredictedPeakEqualsMeasuredPeak) {
  const TemporaryFolder folder;
  for (const char* model : {"resnet20", "densenet40_k12", "alexnet"}) {
    const Finished run =
        run_program(with(small_training(), {"--num_batches=1", std::string("--model=") + model,
                                            "--result_json=" + (folder / "r.json")}));
    ASSERT_EQ(run.status, 0) << run.err;
    const auto result = nlohmann::json::parse(read_file(folder / "r.json"));
    EXPECT_EQ(result["plan"]["arena_bytes"], result["memory"]["arena_peak_bytes"]) << model;
    EXPECT_LE(result["plan"]["arena_bytes"].get<double>(),
              1.02 * result["plan"]["lower_bound_bytes"].get<double>())
        << model;
  }
}

TEST(Training, WritesATraceOfTheLastButOneWarmUpStep) {
  const TemporaryFolder folder;
  const Finished run =
      run_program(with(small_training(), {"--num_batches=1", "--num_warmup_batches=2",
                                          "--trace_file=" + (folder / "sub/t.json")}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("Dumping trace to " + (folder / "sub/t.json")), std::string::npos);
  const auto trace = nlohmann::json::parse(read_file(folder / "sub/t.json"));
  EXPECT_FALSE((trace.is_array() ? trace : trace["traceEvents"]).empty());
}

TEST(Training, Bf16LearnsAsWell) {
  const TemporaryFolder folder;
  const Finished run = run_program(
      with(small_training(),
           {"--num_batches=40", "--synthetic_labels=fixed", "--model=resnet20", "--precision=bf16",
            "--init_learning_rate=0.01", "--result_json=" + (folder / "r.json")}));
  if (run.status != 0) {
    EXPECT_NE(run.err.find("--precision=bf16 is not available on this machine"), std::string::npos)
        << run.err;
    GTEST_SKIP() << "this processor has no AVX-512, or this build no oneDNN";
  }
  const auto result = nlohmann::json::parse(read_file(folder / "r.json"));
  EXPECT_LT(result["steps"].back()["base_loss"].get<double>(),
            0.8 * result["steps"].front()["base_loss"].get<double>());
}

TEST(Training, RefusesFp16OnACpuInOneLine) {
  for (const std::string flag : {"--use_fp16", "--precision=fp16"}) {
    const Finished run = run_program(with(small_training(), {flag}));
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_TRUE(
        run.err.starts_with(flag + " needs a GPU (--device=gpu); on this CPU use --precision="))
        << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  }
}

}  // namespace
}  // namespace cnn::tests
