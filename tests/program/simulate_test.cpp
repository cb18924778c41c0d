#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using nlohmann::json;

bool has_no_cuda() {
  return run_program({"--simulate=h200"}).err.find("no CUDA backend") != std::string::npos;
}

bool says(const Finished& run, const std::string& text) {
  return run.err.find(text) != std::string::npos;
}

// The batch that a line of stderr says is the largest; -1 without such a line.
long largest(const Finished& run) {
  const std::regex line("the largest --batch_size that fits is ([0-9]+)");
  std::smatch found;
  return std::regex_search(run.err, found, line) ? std::stol(found[1]) : -1;
}

class SimulateWithCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (has_no_cuda()) {
      GTEST_SKIP() << "this build has no CUDA backend";
    }
  }
};

TEST(SimulateWithoutCuda, IsRefusedInOneLine) {
  if (!has_no_cuda()) {
    GTEST_SKIP() << "this build has a CUDA backend";
  }
  const Finished run = run_program({"--simulate=h200", "--model=lenet"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err,
            "--simulate=h200: this build has no CUDA backend, so it cannot plan for a GPU\n");
  EXPECT_EQ(run.out, "");
}

TEST_F(SimulateWithCuda, PredictsResnet50OnAnH200) {
  const TemporaryFolder folder;
  const Finished run =
      run_program({"--simulate=h200", "--model=resnet50", "--batch_size=256", "--use_fp16",
                   "--result_json=" + (folder / "r.json"), "--trace_file=" + (folder / "t.json")});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.step_lines().empty());
  EXPECT_NE(run.out.find("Model:       resnet50"), std::string::npos);
  EXPECT_TRUE(says(run, "device: H200 as it is described")) << run.err;
  EXPECT_TRUE(says(run, "plan: f16 activations in nhwc")) << run.err;
  EXPECT_TRUE(says(run, "not a measurement")) << run.err;
  EXPECT_FALSE(says(run, "computing on the CPU")) << run.err;

  const json simulation = json::parse(read_file(folder / "r.json")).at("simulation");
  EXPECT_EQ(simulation.at("machine"), "H200");
  EXPECT_EQ(simulation.at("flops_per_second"), 790e12);
  EXPECT_EQ(simulation.at("bytes_per_second"), 4.3e12);
  const double speed = simulation.at("images_per_sec");
  const double limit = simulation.at("roofline_images_per_sec");
  const double arithmetic = simulation.at("arithmetic_images_per_sec");
  EXPECT_GT(speed, 7000);  // between every op alone and all fusions that are known of
  EXPECT_LT(speed, 15700);
  EXPECT_GE(limit, speed);
  EXPECT_NEAR(arithmetic, 34500, 500);  // 22.9 GFLOP an image
  EXPECT_EQ(simulation.at("library_convolutions").get<int>() +
                simulation.at("own_convolutions").get<int>(),
            158);  // 53 layers in three directions, but for the gradient of the image
  EXPECT_EQ(simulation.at("largest_batch"), largest(run));
  EXPECT_GT(largest(run), 1000);
  EXPECT_NE(read_file(folder / "t.json").find("traceEvents"), std::string::npos);
}

TEST_F(SimulateWithCuda, SaysWhatConcatsNeedNotCopy) {
  const std::vector<std::string> words{"--simulate=h200", "--model=googlenet", "--batch_size=32",
                                       "--use_fp16"};
  const auto with = [&](const std::string& flag) {
    std::vector<std::string> all = words;
    all.push_back(flag);
    return run_program(all);
  };
  const Finished fused = with("--fusion=bn");
  EXPECT_EQ(fused.status, 0);
  EXPECT_TRUE(says(fused, "plan: 18 of 18 concats and splits copy nothing")) << fused.err;
  const Finished apart = with("--fusion=none");
  EXPECT_EQ(apart.status, 0);
  EXPECT_FALSE(says(apart, "copy nothing")) << apart.err;
}

// Images per second that are predicted for an A100.
double predicted(const std::vector<std::string>& flags) {
  const TemporaryFolder folder;
  std::vector<std::string> words{"--simulate=A100", "--model=lenet",
                                 "--result_json=" + (folder / "r.json")};
  words.insert(words.end(), flags.begin(), flags.end());
  const Finished run = run_program(words);
  EXPECT_EQ(run.status, 0) << run.err;
  return run.status == 0 ? json::parse(read_file(folder / "r.json"))["simulation"]["images_per_sec"]
                               .get<double>()
                         : 0;
}

TEST_F(SimulateWithCuda, PredictsEveryPhase) {
  const double training = predicted({"--use_fp16"});
  EXPECT_GT(training, 0);
  EXPECT_GT(predicted({"--use_fp16", "--forward_only"}), training);
  EXPECT_GT(predicted({"--use_fp16", "--eval"}), training);
}

TEST_F(SimulateWithCuda, PredictsEveryPrecision) {
  const double half = predicted({"--precision=fp16"});
  const double tf32 = predicted({});
  EXPECT_GT(half, tf32);
  EXPECT_GT(predicted({"--precision=bf16"}), tf32);
  EXPECT_LE(predicted({"--precision=fp32_strict"}), tf32);
}

TEST_F(SimulateWithCuda, PrintsThePlanOnRequest) {
  const Finished run = run_program({"--simulate=h100", "--model=lenet", "--print_plan"});
  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(says(run, "compute")) << run.err;
  EXPECT_TRUE(says(run, "conv_backward_weights#")) << run.err;
}

TEST_F(SimulateWithCuda, RefusesWhatCannotFitLikeARunThere) {
  const Finished run = run_program({"--simulate=h100", "--model=resnet50", "--batch_size=2500"});
  EXPECT_EQ(run.status, 3);
  EXPECT_TRUE(says(run, "GiB are free on H100")) << run.err;
  EXPECT_GT(largest(run), 100);
  EXPECT_LT(largest(run), 2500);
}

TEST_F(SimulateWithCuda, RefusesAMachineThatItDoesNotKnow) {
  const Finished run = run_program({"--simulate=b200"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err,
            "there is no description of a machine called 'b200'; there are a100, h100, h200\n");
}

TEST_F(SimulateWithCuda, SaysWhichFlagsDoNotGoWithIt) {
  EXPECT_TRUE(says(run_program({"--simulate=h200", "--device=cpu"}), "drop --device=cpu"));
  EXPECT_TRUE(says(run_program({"--simulate=h200", "--tune", "--plan_cache=c"}), "--tune times"));
  EXPECT_TRUE(says(run_program({"--simulate=h200", "--data_name=mnist", "--data_dir=/none"}),
                   "drop --data_dir"));
  const Finished run = run_program({"--simulate=h200", "--model=lenet", "--num_batches=3",
                                    "--train_dir=/none", "--plan_cache=c"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(says(run, "--train_dir does not act with --simulate")) << run.err;
  EXPECT_TRUE(says(run, "--plan_cache does not act with --simulate")) << run.err;
  EXPECT_TRUE(says(run, "predicts one step")) << run.err;
}

}  // namespace
}  // namespace cnn::tests
