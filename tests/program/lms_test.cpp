#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/lms_training.h"

namespace cnn::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST(Lms, TrainsInLessMemoryWithTheSameLosses) {
  const LmsRun whole = lms_train({});
  ASSERT_EQ(whole.run.status, 0) << whole.run.err;
  const Words device{"--lms", "--emulate_link_gbps=2,1"};
  for (const char* budget : {"--device_memory_mb=60", "--device_memory_mb=30"}) {
    Words flags = device;
    flags.emplace_back(budget);
    const LmsRun less = lms_train(flags);
    ASSERT_EQ(less.run.status, 0) << less.run.err;
    const json& plan = less.result.at("plan").at("lms");
    EXPECT_TRUE(plan.at("necessary").get<bool>());
    EXPECT_GT(plan.at("swapped_tensors").get<int>() + plan.at("recomputed_nodes").get<int>(), 0);
    EXPECT_EQ(losses(less.result), losses(whole.result)) << budget;
    EXPECT_LE(less.result.at("memory").at("arena_peak_bytes").get<std::size_t>(),
              plan.at("budget_bytes").get<std::size_t>());
    EXPECT_EQ(less.result.at("memory").at("arena_peak_bytes"),
              less.result.at("plan").at("arena_bytes"));
    EXPECT_LE(plan.at("lower_bound_seconds").get<double>(),
              plan.at("predicted_step_seconds").get<double>());
  }
}

// Adam has two slots per variable, and each budget joins their updates into other buckets.
TEST(Lms, SavesTheCheckpointOfTheRunWithoutIt) {
  const TemporaryFolder folder;
  const auto saved = [&](const std::string& name, const Words& more) {
    Words flags{"--optimizer=adam", "--batch_size=16", "--train_dir=" + folder / name};
    flags.insert(flags.end(), more.begin(), more.end());
    const Finished run = run_program(lms_training(flags));
    EXPECT_EQ(run.status, 0) << run.err;
    return read_file(folder / (name + "/model.ckpt-3.safetensors"));
  };
  const std::string whole = saved("whole", {});
  EXPECT_GT(whole.size(), 1000U);
  EXPECT_TRUE(saved("less", {"--lms", "--device_memory_mb=16"}) == whole);
}

// A CPU that plays a device has no room for the weights of the first dense layer and their slots.
TEST(Lms, TrainsWithVariablesOnTheHostToTheSameCheckpoint) {
  const TemporaryFolder folder;
  const auto trained = [&](const std::string& name, const Words& more) {
    Words flags{"--device=cpu",     "--model=mnist_deep",       "--data_name=mnist",
                "--batch_size=8",   "--num_batches=3",          "--num_warmup_batches=0",
                "--optimizer=adam", "--measure_ceilings=false", "--train_dir=" + folder / name};
    flags.insert(flags.end(), more.begin(), more.end());
    Finished run = run_program(flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return run;
  };
  const auto checkpoint = [&](const std::string& name) {
    return read_file(folder / (name + "/model.ckpt-3.safetensors"));
  };
  trained("whole", {});
  const Finished hosted =
      trained("hosted", {"--lms", "--device_memory_mb=40", "--emulate_link_gbps=2"});
  EXPECT_THAT(hosted.out + hosted.err, HasSubstr("37 MiB of variables lie on the host"));
  EXPECT_GT(checkpoint("whole").size(), std::size_t{36} << 20U);
  EXPECT_TRUE(checkpoint("hosted") == checkpoint("whole"));
}

TEST(Lms, TrainsByRecomputationAloneWhereAllMemoryIsOne) {
  const LmsRun whole = lms_train({});
  const LmsRun less = lms_train({"--lms", "--lms_limit=50"});
  ASSERT_EQ(less.run.status, 0) << less.run.err;
  const json& plan = less.result.at("plan").at("lms");
  EXPECT_EQ(plan.at("swapped_tensors"), 0);
  EXPECT_GT(plan.at("recomputed_nodes").get<int>(), 0);
  EXPECT_EQ(losses(less.result), losses(whole.result));
}

TEST(Lms, MovesLittleWhereLittleIsMissing) {
  const LmsRun run = lms_train({"--lms", "--device_memory_mb=88", "--emulate_link_gbps=2"});
  ASSERT_EQ(run.run.status, 0) << run.run.err;
  const json& lms = run.result.at("plan").at("lms");
  const auto missing = lms.at("need_bytes").get<double>() - lms.at("budget_bytes").get<double>();
  EXPECT_GT(missing, 0);
  EXPECT_LE(lms.at("swapped_out_bytes").get<double>(), 2 * missing);
}

std::string lms_limit(double bytes) {
  return "--lms_limit=" + std::to_string(static_cast<int>(std::ceil(bytes / (1 << 20))));
}

// The need and the floor depend on the library of the convolutions. Without oneDNN, convolutions
// convert whole maps, which takes more than what joined gradients take: then nothing is gained.
TEST(Lms, AddsGradientsInNodesOfTheirOwnNearTheFloor) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const LmsRun whole = lms_train({});
  const LmsRun wide =
      lms_train({"--lms", lms_limit(whole.result.at("plan").at("arena_bytes").get<double>() / 2)});
  const json& roomy = wide.result.at("plan").at("lms");
  EXPECT_TRUE(roomy.at("largest_join_bytes").is_null());
  const std::string near = lms_limit(roomy.at("floor_bytes").get<double>());
  const LmsRun less = lms_train({"--lms", near, "--lms_plan_out=" + plan});
  ASSERT_EQ(less.run.status, 0) << less.run.err;
  const json& lms = less.result.at("plan").at("lms");
  const bool gains = whole.result.at("machine").at("libraries").contains("oneDNN");
  EXPECT_EQ(lms.at("largest_join_bytes").is_number(), gains) << lms.dump();
  EXPECT_EQ(lms.at("need_bytes"), roomy.at("need_bytes"));
  EXPECT_EQ(losses(less.result), losses(whole.result));
  const LmsRun loaded = lms_train({"--lms", near, "--lms_plan_file=" + plan});
  ASSERT_EQ(loaded.run.status, 0) << loaded.run.err;
  EXPECT_EQ(losses(loaded.result), losses(whole.result));
  EXPECT_EQ(loaded.result.at("plan").at("lms").at("largest_join_bytes"),
            lms.at("largest_join_bytes"));
}

TEST(Lms, PlansNodesOfTheirOwnForGradientsOnASimulatedGpu) {
  const auto planned = [](double bytes) {
    const LmsRun run = lms_train({"--device=gpu", "--simulate=p100-pcie3", "--lms",
                                  "--lms_simulate_only", lms_limit(bytes)});
    EXPECT_EQ(run.run.status, 0) << run.run.err;
    return run.result.at("plan").at("lms");
  };
  const json roomy = planned(64 << 20);
  EXPECT_TRUE(roomy.at("necessary").get<bool>());
  EXPECT_TRUE(roomy.at("largest_join_bytes").is_null());
  const json near = planned(roomy.at("floor_bytes").get<double>());
  EXPECT_TRUE(near.at("largest_join_bytes").is_number()) << near.dump();
}

TEST(Lms, PlansAgainAtTheEndOfTheWarmUp) {
  const Words more{"--num_warmup_batches=2"};
  const LmsRun whole = lms_train(more);
  const LmsRun less = lms_train(
      {"--num_warmup_batches=2", "--lms", "--device_memory_mb=50", "--emulate_link_gbps=2"});
  ASSERT_EQ(less.run.status, 0) << less.run.err;
  EXPECT_THAT(less.run.err, HasSubstr("planned again by measured times"));
  EXPECT_GT(less.result.at("plan").at("lms").at("measured_step_seconds").get<double>(), 0);
  EXPECT_EQ(losses(less.result), losses(whole.result));
}

TEST(Lms, IsTurnedOffWhereItIsNotNecessary) {
  const LmsRun trained = lms_train({"--lms"});
  ASSERT_EQ(trained.run.status, 0) << trained.run.err;
  EXPECT_THAT(trained.run.err, HasSubstr("LMS is not necessary. Turned LMS off."));
  EXPECT_FALSE(trained.result.at("plan").at("lms").at("necessary").get<bool>());
  EXPECT_EQ(trained.result.at("plan").at("lms").at("swapped_tensors"), 0);
}

TEST(Lms, RefusesWhatNoPlanFitsIn) {
  const Finished run = run_program(lms_training({"--lms", "--device_memory_mb=8"}));
  EXPECT_EQ(run.status, 3);
  EXPECT_THAT(run.err, HasSubstr("OOM when allocating tensor with shape[64,"));
  EXPECT_THAT(run.err,
              HasSubstr("does not fit with --lms: with as much away as possible a step needs"));
  EXPECT_TRUE(run.step_lines().empty());
}

TEST(Lms, RefusesAnEvaluationThatIsLargerThanTheBudget) {
  const Finished run =
      run_program(lms_training({"--lms", "--lms_limit=50", "--eval_batch_size=4000",
                                "--eval_during_training_every_n_steps=2"}));
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.err, HasSubstr("OOM when allocating tensor with shape[4000,"));
  EXPECT_THAT(run.err,
              HasSubstr("with --eval_batch_size=4000 does not fit with --lms: its evaluation"));
  EXPECT_THAT(run.err, Not(HasSubstr("--batch_size=1")));
}

TEST(Lms, IsRecommendedWhereAStepDoesNotFitWithoutIt) {
  const Finished run = run_program(lms_training({"--device_memory_mb=50"}));
  EXPECT_EQ(run.status, 3);
  EXPECT_THAT(run.err, HasSubstr("Resource exhausted: OOM when allocating tensor with shape[64,"));
  EXPECT_THAT(run.err, HasSubstr("--lms trains larger ones"));
}

TEST(Lms, SavesTheSameWeights) {
  const TemporaryFolder folder;
  const auto weights = [&](const std::string& name, const Words& more) {
    Words flags = lms_training(more);
    flags.push_back("--train_dir=" + (folder / name));
    const Finished run = run_program(flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return read_file(folder / (name + "/model.ckpt-3.safetensors"));
  };
  const std::string whole = weights("whole", {});
  EXPECT_EQ(weights("less", {"--lms", "--device_memory_mb=40"}), whole);
  EXPECT_FALSE(whole.empty());
}

TEST(Lms, PlansWithoutTrainingOnRequest) {
  const Finished run = run_program(
      lms_training({"--lms", "--device_memory_mb=40", "--lms_simulate_only", "--lms_debug"}));
  EXPECT_THAT(run.err, testing::AnyOf(HasSubstr("leaves the device"), HasSubstr("runs again")));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("[LMS][0] predicted step"));
  EXPECT_THAT(run.err, HasSubstr("lower bound"));
  EXPECT_THAT(run.err, HasSubstr("not measured here"));
  EXPECT_TRUE(run.step_lines().empty());
}

TEST(Lms, OffersThePoliciesOfOtherSystems) {
  const LmsRun whole = lms_train({});
  struct Row {
    std::string flag, line;
  };
  for (const Row& row : {Row{"--lms_policy=tflms1", "[LMS][0] Editing model for LMS, took: "},
                         Row{"--lms_swapout_threshold=1", "[LMS][0]   swapout_threshold: 1"},
                         Row{"--lms_policy=caffe", "[LMS:0] allocate: size="},
                         Row{"--lms_policy=reclaim", "[LMS][0] Reclaimed "}}) {
    const LmsRun less =
        lms_train({"--lms", row.flag, "--device_memory_mb=80", "--emulate_link_gbps=4"});
    ASSERT_EQ(less.run.status, 0) << less.run.err;
    EXPECT_THAT(less.run.err, HasSubstr(row.line));
    EXPECT_THAT(less.run.err, Not(HasSubstr("{}")));
    EXPECT_EQ(losses(less.result), losses(whole.result)) << row.flag;
    EXPECT_GT(less.result.at("plan").at("lms").at("swapped_tensors").get<int>(), 0);
  }
}

}  // namespace
}  // namespace cnn::tests
