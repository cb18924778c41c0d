#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using nlohmann::json;

bool has_no_cuda() {
  return run_program({"--simulate=h200", "--model=trivial"}).err.find("no cuDNN to ask") !=
         std::string::npos;
}

bool says(const Finished& run, const std::string& text) {
  return run.err.find(text) != std::string::npos;
}

// Returns the batch that a line of stderr calls the largest, or -1 without such a line.
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

struct Simulated {
  Finished run;
  json result;
};

Simulated simulated(const std::string& machine, std::vector<std::string> words) {
  const TemporaryFolder folder;
  words.push_back("--simulate=" + machine);
  words.push_back("--result_json=" + (folder / "r.json"));
  Simulated found{.run = run_program(words), .result = {}};
  found.result = json::parse(read_file(folder / "r.json"));
  return found;
}

// Returns the simulated speed of ResNet-50 without a memory limit.
double calibrated_speed(const std::string& machine, const std::vector<std::string>& words) {
  std::vector<std::string> all{"--model=resnet50", "--fusion=bn"};
  all.insert(all.end(), words.begin(), words.end());
  return simulated(machine, all).result.at("simulation").at("images_per_sec");
}

TEST(Simulate, GivesTheSpeedsThatItsProfilesAreCalibratedTo) {
  EXPECT_NEAR(calibrated_speed("p100-pcie3", {"--batch_size=150"}), 255, 0.5);
  EXPECT_NEAR(calibrated_speed("P100-NVLink1", {"--batch_size=150"}), 255, 0.5);
  EXPECT_NEAR(calibrated_speed("v100-nvlink2", {"--batch_size=150"}), 370, 0.7);
  EXPECT_NEAR(calibrated_speed("a100", {"--batch_size=1024", "--use_fp16"}), 2757, 6);
}

// The limits are those of TensorFlow on that card, except that fused norms make 200 fit as well.
TEST(Simulate, FitsResnet50OnAP100AsFarAsItsMemoryGoes) {
  EXPECT_EQ(simulated("p100-pcie3", {"--model=resnet50", "--batch_size=200"}).run.status, 0);
  const Finished run = simulated("p100-pcie3", {"--model=resnet50", "--batch_size=210"}).run;
  EXPECT_EQ(run.status, 3);
  EXPECT_TRUE(says(run, "OOM when allocating tensor with shape[")) << run.err;
  EXPECT_TRUE(says(run, "are free on P100-PCIe3 (usable memory of its profile)")) << run.err;
  EXPECT_EQ(largest(run), 208);
}

TEST(Simulate, PlansWithLmsWithinTheMemoryOfTheMachine) {
  const TemporaryFolder folder;
  const Simulated p100 = simulated("p100-pcie3", {"--model=resnet50", "--batch_size=400", "--lms",
                                                  "--trace_file=" + (folder / "t.json")});
  ASSERT_EQ(p100.run.status, 0) << p100.run.err;
  EXPECT_TRUE(says(p100.run, "[LMS][0] budget 15565 MiB, need 29764 MiB (x1.91), floor "));
  EXPECT_TRUE(says(p100.run, "simulate: with --lms 9")) << p100.run.err;
  const json& lms = p100.result.at("plan").at("lms");
  EXPECT_EQ(lms.at("budget_bytes"), 16'320'875'724);
  EXPECT_LE(p100.result.at("plan").at("arena_bytes"), lms.at("budget_bytes"));
  EXPECT_GE(lms.at("predicted_step_seconds"), lms.at("lower_bound_seconds"));
  EXPECT_NEAR(lms.at("unlimited_step_seconds").get<double>(), 400 / 255.0, 0.01);
  EXPECT_NEAR(p100.result.at("simulation").at("images_per_sec").get<double>(),
              400 / lms.at("predicted_step_seconds").get<double>(), 1e-6);
  EXPECT_EQ(lms.at("predicted_step_seconds"), p100.result.at("simulation").at("step_seconds"));
  std::map<int, int> events;  // number of events per row
  const json trace = json::parse(read_file(folder / "t.json"));
  for (const json& event : trace.at("traceEvents")) {
    events[event.at("ph") == "X" ? event.at("tid").get<int>() : -1] += 1;
  }
  EXPECT_GT(events[0], 280);  // the compute row
  EXPECT_GE(events[3], events[2]);
  EXPECT_GE(events[2], lms.at("swapped_tensors").get<int>());
}

// The budget is half of the step's need, on a P100 with PCIe. The expected shares of the unlimited
// speed are those of the original systems, followed by ours.
TEST(Simulate, HasPoliciesThatDifferAsTheOriginalsDid) {
  const auto share = [](std::vector<std::string> words) {
    words.insert(words.end(),
                 {"--model=resnet50", "--batch_size=150", "--lms", "--lms_limit=5594"});
    const Simulated p100 = simulated("p100-pcie3", words);
    EXPECT_EQ(p100.run.status, 0) << p100.run.err;
    const json& lms = p100.result.at("plan").at("lms");
    return lms.at("unlimited_step_seconds").get<double>() /
           lms.at("predicted_step_seconds").get<double>();
  };
  EXPECT_NEAR(share({"--lms_swapout_threshold=1", "--lms_swapin_ahead=1", "--lms_sync_mode=3"}),
              0.23, 0.02);
  EXPECT_NEAR(share({"--lms_policy=tflms1"}), 0.25, 0.03);
  const double oldest_first = share({"--lms_policy=window"});
  EXPECT_GT(oldest_first, 0.3);
  EXPECT_LT(oldest_first, 0.5);
  EXPECT_NEAR(share({"--lms_policy=reclaim"}), 0.41, 0.03);
  EXPECT_GT(share({"--lms_policy=planned"}), 0.96);
}

// Every activation is swapped out. The forward pass is shorter than its copies, so 9 of the 22 GiB
// are still being copied at its end. They fit the 11 GiB that nothing else uses.
TEST(Simulate, LetsNoStepOfAPolicyWaitForACopyBesideIdleMemory) {
  const Simulated tflms1 = simulated(
      "p100-nvlink1", {"--model=resnet50", "--batch_size=314", "--lms", "--lms_policy=tflms1"});
  ASSERT_EQ(tflms1.run.status, 0) << tflms1.run.err;
  const json& lms = tflms1.result.at("plan").at("lms");
  EXPECT_LT(lms.at("predicted_step_seconds").get<double>(), 2.2);
  EXPECT_LT(lms.at("predicted_stall_seconds").at("memory").get<double>(), 0.35);
  EXPECT_GT(lms.at("predicted_peak_bytes").get<std::size_t>(), std::size_t{10} << 30U);
  EXPECT_LE(lms.at("predicted_peak_bytes"), lms.at("budget_bytes"));
}

TEST(SlowSimulate, FindsBatchesOfVgg16ThatNeedLargeModelSupport) {
  const auto largest_batch = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--model=vgg16", "--batch_size=64", "--find_max_batch"});
    const Simulated p100 = simulated("p100-pcie3", words);
    EXPECT_EQ(p100.run.status, 0) << p100.run.err;
    return p100.result.at("search").at("largest").get<int>();
  };
  const int without = largest_batch({});
  EXPECT_GT(without, 300);
  EXPECT_LT(without, 450);
  EXPECT_GE(largest_batch({"--lms"}), 570);
}

TEST(Simulate, ObeysTheLimitsOfFlagsBesideThoseOfTheMachine) {
  const std::vector<std::string> words{"--model=resnet50", "--batch_size=150", "--lms",
                                       "--lms_limit=6000"};
  const Simulated p100 = simulated("p100-nvlink1", words);
  EXPECT_EQ(p100.run.status, 0) << p100.run.err;
  EXPECT_TRUE(says(p100.run, "budget 6000 MiB, need 11224 MiB (x1.87)")) << p100.run.err;
  const Simulated roomy = simulated("h200", words);
  EXPECT_LT(roomy.result.at("plan").at("lms").at("predicted_step_seconds"),
            p100.result.at("plan").at("lms").at("predicted_step_seconds"));
  const Simulated whole =
      simulated("p100-pcie3", {"--model=resnet50", "--batch_size=150", "--lms"});
  EXPECT_TRUE(says(whole.run, "LMS is not necessary. Turned LMS off.")) << whole.run.err;
  const json& lms = whole.result.at("plan").at("lms");
  EXPECT_FALSE(lms.at("necessary").get<bool>());
  EXPECT_GT(lms.at("floor_bytes"), std::size_t{1} << 30U);
  EXPECT_LT(lms.at("floor_bytes"), lms.at("need_bytes"));
  EXPECT_NEAR(lms.at("lower_bound_seconds").get<double>(),
              lms.at("predicted_step_seconds").get<double>(), 1e-6);
}

TEST(Simulate, SaysWhatItAssumesOfWhatItCannotAsk) {
  const Simulated lenet = simulated("p100-pcie3", {"--model=lenet"});
  EXPECT_EQ(lenet.run.status, 0);
  EXPECT_TRUE(says(lenet.run, "cuDNN does not describe this GPU here")) << lenet.run.err;
  EXPECT_TRUE(says(lenet.run, "which gives resnet50, fp32, batch 150: 255 images/sec"));
}

TEST(Simulate, RefusesProfilesInOneLine) {
  const TemporaryFolder folder;
  std::ofstream(folder / "p.json") << R"({"name": "mine"})";
  const auto error_of = [](const std::string& flag) {
    const Finished run = run_program({flag, "--model=lenet"});
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  EXPECT_EQ(error_of("--simulate=b200"),
            "--simulate=b200: there is no profile of that name and no such file; there are a100, "
            "h100, h200, p100-nvlink1, p100-pcie3, v100-nvlink2; did you mean h200?\n");
  EXPECT_EQ(error_of("--simulate=" + (folder / "p.json")),
            "--simulate: the profile " + (folder / "p.json") + ": source is missing\n");
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
  EXPECT_GT(speed, 7000);  // between single ops and all known fusions
  EXPECT_LT(speed, 15700);
  EXPECT_GE(limit, speed);
  EXPECT_NEAR(arithmetic, 34500, 500);  // 22.9 GFLOP per image
  EXPECT_EQ(simulation.at("library_convolutions").get<int>() +
                simulation.at("own_convolutions").get<int>(),
            158);  // 53 layers in three directions, without the image's gradient
  EXPECT_EQ(simulation.at("largest_batch"), largest(run));
  EXPECT_GT(largest(run), 1000);
  EXPECT_NE(read_file(folder / "t.json").find("traceEvents"), std::string::npos);
}

TEST(Simulate, SaysWhatConcatsNeedNotCopy) {
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

// Returns the images per second predicted for an A100.
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

TEST(Simulate, PredictsEveryPhase) {
  const double training = predicted({"--use_fp16"});
  EXPECT_GT(training, 0);
  EXPECT_GT(predicted({"--use_fp16", "--forward_only"}), training);
  EXPECT_GT(predicted({"--use_fp16", "--eval"}), training);
}

TEST(Simulate, PredictsEveryPrecision) {
  const double half = predicted({"--precision=fp16"});
  const double tf32 = predicted({});
  EXPECT_GT(half, tf32);
  EXPECT_GT(predicted({"--precision=bf16"}), tf32);
  EXPECT_LE(predicted({"--precision=fp32_strict"}), tf32);
}

TEST(Simulate, PrintsThePlanOnRequest) {
  const Finished run = run_program({"--simulate=h100", "--model=lenet", "--print_plan"});
  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(says(run, "compute")) << run.err;
  EXPECT_TRUE(says(run, "conv_backward_weights#")) << run.err;
}

TEST(Simulate, RefusesWhatCannotFitLikeARunThere) {
  const Finished run = run_program({"--simulate=h100", "--model=resnet50", "--batch_size=2500"});
  EXPECT_EQ(run.status, 3);
  EXPECT_TRUE(says(run, "GiB are free on H100")) << run.err;
  EXPECT_GT(largest(run), 100);
  EXPECT_LT(largest(run), 2500);
}

TEST(Simulate, SaysWhichFlagsDoNotGoWithIt) {
  EXPECT_TRUE(says(run_program({"--simulate=h200", "--device=cpu"}), "drop --device=cpu"));
  EXPECT_TRUE(says(run_program({"--simulate=h200", "--tune", "--plan_cache=c"}), "--tune times"));
  EXPECT_TRUE(says(run_program({"--simulate=h200", "--data_name=mnist", "--data_dir=/none"}),
                   "drop --data_dir"));
  const Finished run = run_program({"--simulate=h200", "--model=lenet", "--num_batches=3",
                                    "--train_dir=/none", "--plan_cache=c"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(says(run, "--simulate runs no step: --train_dir does nothing")) << run.err;
  EXPECT_TRUE(says(run, "--plan_cache does not act with --simulate")) << run.err;
  EXPECT_TRUE(says(run, "no step is run")) << run.err;
}

TEST(SimulateRanks, PredictsHowAStepScales) {
  const auto ranks = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--model=resnet50", "--batch_size=64", "--simulate_ranks=1,2,8"};
    words.insert(words.end(), more.begin(), more.end());
    const Simulated found = simulated("h200", words);
    EXPECT_EQ(found.run.status, 0) << found.run.err;
    EXPECT_TRUE(says(found.run, " ranks on ")) << found.run.err;
    EXPECT_TRUE(says(found.run, "assumed: the step of a rank has a standard deviation of "));
    EXPECT_FALSE(says(found.run, "-0.000")) << found.run.err;
    EXPECT_EQ(found.result.at("batch"), json({{"global", 64}, {"per_device", 64}}));
    EXPECT_EQ(found.run.out.find("128 global"), std::string::npos) << found.run.out;
    return found.result.at("simulation").at("ranks");
  };
  const json usual = ranks({});
  ASSERT_EQ(usual.size(), 3U);
  EXPECT_EQ(usual[0].at("efficiency"), 1);
  double before = 1;
  for (const json& row : usual) {
    const double efficiency = row.at("efficiency"), plain = row.at("efficiency_without_overlap");
    EXPECT_LE(efficiency, before + 0.01);
    EXPECT_GE(efficiency, plain);
    EXPECT_GE(row.at("exposed_seconds"), 0);
    EXPECT_LE(row.at("exposed_seconds").get<double>(),
              row.at("exchange_seconds").get<double>() + 1e-9);
    before = efficiency;
  }
  const json slow = ranks({"--comm_host_gbps=1.25"});
  EXPECT_LT(slow[2].at("efficiency"), usual[2].at("efficiency"));
  const json at_end = ranks({"--comm_host_gbps=1.25", "--nocomm_overlap"});
  EXPECT_NEAR(at_end[2].at("efficiency"), slow[2].at("efficiency_without_overlap"), 0.01);
  const json steady = ranks({"--simulate_ranks_jitter=0", "--simulate_ranks_slowdown=0"});
  EXPECT_EQ(usual[0].at("straggler_seconds"), 0);
  EXPECT_GT(usual[2].at("straggler_seconds"), 0);
  EXPECT_GT(usual[2].at("slowdown_seconds"), 0);
  EXPECT_EQ(steady[2].at("straggler_seconds"), 0);
  EXPECT_GT(steady[2].at("efficiency"), usual[2].at("efficiency"));
  const json full = ranks({"--simulate_ranks_per_host=8", "--simulate_ranks=8,16"});
  EXPECT_EQ(full[1].at("hosts"), 2);
  EXPECT_EQ(
      run_program({"--simulate=h200", "--simulate_ranks=9", "--simulate_ranks_per_host=8"}).status,
      1);
}

}  // namespace
}  // namespace cnn::tests
