// Tests the files that --lms reads and writes: plans, traces, tables.
#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <sstream>

#include "tests/program/lms_training.h"

namespace cnn::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const Words device{"--lms", "--device_memory_mb=40", "--emulate_link_gbps=2,1"};

Words on_device(const Words& more) {
  Words words = device;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(LmsPlanFile, MakesTheSameRunAgain) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const LmsRun whole = lms_train({});
  // The file must hold the plan made from the warm-up's times.
  const LmsRun made = lms_train(on_device({"--lms_plan_out=" + plan, "--num_warmup_batches=2"}));
  ASSERT_EQ(made.run.status, 0) << made.run.err;
  EXPECT_EQ(json::parse(read_file(plan)).at("peak_bytes"),
            made.result.at("plan").at("lms").at("predicted_peak_bytes"));
  const LmsRun loaded = lms_train(on_device({"--lms_plan_file=" + plan}));
  ASSERT_EQ(loaded.run.status, 0) << loaded.run.err;
  EXPECT_THAT(loaded.run.err, HasSubstr("the plan is that of " + plan));
  EXPECT_EQ(losses(loaded.result), losses(whole.result));
  for (const char* key : {"swapped_tensors", "swapped_out_bytes", "swapped_in_bytes",
                          "recomputed_nodes", "predicted_peak_bytes"}) {
    EXPECT_EQ(loaded.result.at("plan").at("lms").at(key), made.result.at("plan").at("lms").at(key));
  }
  EXPECT_EQ(loaded.result.at("plan").at("lms").at("plan_file"), plan);
  // A loaded plan stays unchanged even after a warm-up has measured times.
  const LmsRun warm = lms_train(on_device({"--lms_plan_file=" + plan, "--num_warmup_batches=2"}));
  EXPECT_THAT(warm.run.err, Not(HasSubstr("planned again")));
  EXPECT_EQ(warm.result.at("plan").at("lms").at("swapped_in_bytes"),
            made.result.at("plan").at("lms").at("swapped_in_bytes"));
}

TEST(LmsPlanFile, RunsWhereItsStepWouldFitWithout) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const Finished made =
      run_program(lms_training(on_device({"--lms_plan_out=" + plan, "--lms_simulate_only"})));
  EXPECT_EQ(made.status, 0) << made.err;
  const LmsRun loaded =
      lms_train({"--lms", "--device_memory_mb=400", "--lms_plan_file=" + plan, "--lms_verify"});
  ASSERT_EQ(loaded.run.status, 0) << loaded.run.err;
  EXPECT_FALSE(loaded.result.at("plan").at("lms").at("necessary").get<bool>());
  EXPECT_GT(loaded.result.at("plan").at("lms").at("swapped_tensors").get<int>(), 0);
  EXPECT_EQ(losses(loaded.result), losses(lms_train({}).result));
}

// With a budget of 40 MiB the updates have buckets of 1 MiB, with 400 MiB larger ones.
TEST(LmsPlanFile, BringsTheBucketsOfItsUpdatesAlong) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  const Words model{"--model=resnet56", "--batch_size=16", "--num_batches=2"};
  Words make = on_device({"--lms_plan_out=" + plan, "--lms_simulate_only"});
  make.insert(make.end(), model.begin(), model.end());
  EXPECT_EQ(run_program(lms_training(make)).status, 0);
  Words load{"--lms", "--device_memory_mb=400", "--lms_plan_file=" + plan};
  load.insert(load.end(), model.begin(), model.end());
  const LmsRun loaded = lms_train(load);
  ASSERT_EQ(loaded.run.status, 0) << loaded.run.err;
  EXPECT_EQ(losses(loaded.result), losses(lms_train(model).result)) << "one bucket";
}

TEST(LmsPlanFile, IsRefusedForAnotherStepOrSmallerDevice) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  run_program(lms_training(on_device({"--lms_plan_out=" + plan, "--lms_simulate_only"})));
  const auto refusal = [&](const Words& more) {
    Words words = on_device(more);
    words.push_back("--lms_plan_file=" + plan);
    const Finished run = run_program(lms_training(words));
    EXPECT_NE(run.status, 0);
    EXPECT_TRUE(run.step_lines().empty());
    return run.err;
  };
  EXPECT_THAT(refusal({"--batch_size=32", "--model=resnet32"}),
              HasSubstr("the plan is for another step: model resnet20 (here resnet32), batch_size "
                        "64 (here 32)"));
  EXPECT_THAT(refusal({"--optimizer=momentum"}), HasSubstr("optimizer sgd (here momentum)"));
  EXPECT_THAT(refusal({"--print_training_accuracy"}), HasSubstr("another graph of this network"));
  EXPECT_THAT(refusal({"--lms_limit=30"}), HasSubstr("the plan of " + plan + " needs "));
  std::string text = read_file(plan);
  const std::size_t line = text.find("\n  \"run 1 ");
  text.erase(line, text.find('\n', line + 1) - line);
  folder.write("plan.json", text);
  EXPECT_THAT(refusal({}), HasSubstr("--lms_plan_file=" + plan + ": "));
  folder.write("plan.json", text.substr(0, text.size() / 2));
  EXPECT_THAT(refusal({}), HasSubstr("not JSON at line 1"));
  EXPECT_THAT(refusal({"--lms_policy=tflms1"}), HasSubstr("do nothing beside --lms_plan_file"));
}

TEST(LmsTrace, ShowsAPlannedAndAMeasuredStepWithThreeLanesEach) {
  const TemporaryFolder folder;
  const Finished run = run_program(lms_training(on_device({"--lms_trace=" + (folder / "t.json")})));
  ASSERT_EQ(run.status, 0) << run.err;
  const json events = json::parse(read_file(folder / "t.json")).at("traceEvents");
  std::set<std::pair<int, int>> lanes;  // pairs of process and lane
  std::set<std::string> titles;
  for (const json& event : events) {
    if (event.at("ph") == "X") {
      lanes.emplace(event.at("pid").get<int>(), event.at("tid").get<int>());
    } else if (event.at("name") == "process_name") {
      titles.insert(event.at("args").at("name").get<std::string>());
    }
  }
  EXPECT_EQ(lanes.size(), 6U);
  EXPECT_EQ(titles, (std::set<std::string>{"measured", "planned"}));
}

TEST(LmsTrace, ShowsThePlanWhereNoStepRuns) {
  const TemporaryFolder folder;
  const Words files{"--lms_trace=" + (folder / "t.json"), "--lms_simulate_only",
                    "--steps_csv=" + (folder / "old"), "--train_dir=" + (folder / "new")};
  folder.write("old", "earlier steps");
  const Finished run = run_program(lms_training(on_device(files)));
  ASSERT_EQ(run.status, 0) << run.err;
  const json events = json::parse(read_file(folder / "t.json")).at("traceEvents");
  std::set<int> lanes;
  for (const json& event : events) {
    if (event.at("ph") == "X") {
      lanes.insert(event.at("tid").get<int>());
    }
  }
  EXPECT_EQ(lanes.size(), 3U) << "compute, out and in";
  EXPECT_EQ(read_file(folder / "old"), "earlier steps") << "what does nothing touches no file";
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
}

std::vector<std::string> lines_of(const std::string& text) {
  return Finished{.status = 0, .out = text, .err = {}}.lines();
}

TEST(LmsStats, AreTablesLikeThoseOfTensorFlowsExamples) {
  const TemporaryFolder folder;
  const Words flags = on_device({"--lms_stats", "--lms_stats_average", "--lms_stats_warmup_steps=1",
                                 "--output_dir=" + (folder / "outputs")});
  const LmsRun trained = lms_train(flags);
  ASSERT_EQ(trained.run.status, 0) << trained.run.err;
  const auto steps = lines_of(read_file(folder / "outputs/resnet20_lms_stats.csv"));
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[0], "step type,epoch,step,duration,allocs,reclaimOnes,reclaimAlls,GiB reclaimed");
  EXPECT_THAT(steps[1], StartsWith("t,0,1,"));
  EXPECT_THAT(steps[3], StartsWith("t,0,3,"));
  lms_train(flags);  // appends the averages of a second run
  const auto averages = lines_of(read_file(folder / "outputs/resnet20_lms_stats_average.csv"));
  ASSERT_EQ(averages.size(), 3U);
  EXPECT_EQ(averages[0],
            "image_size,megapixels/sec,median megapixels/sec,gib_reclaimed,allocs,num_steps,"
            "reclaim_alls,reclaim_ones,time");
  EXPECT_THAT(averages[1], StartsWith("32,0."));
  EXPECT_THAT(averages[2], HasSubstr(",2,0.0,"));
}

// Returns the least device memory in MiB in which the policy has a plan: refusals say first what
// any policy needs, then what this one does.
int least_mib_of(const std::string& policy) {
  int mib = 8;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Finished refused = run_program(
        lms_training({"--lms", "--device_memory_mb=" + std::to_string(mib), "--emulate_link_gbps=2",
                      "--lms_policy=" + policy, "--lms_simulate_only"}));
    std::smatch found;
    if (refused.status != 3 ||
        !std::regex_search(refused.err, found, std::regex("needs ([0-9]+)[.][0-9]+ MiB"))) {
      break;
    }
    mib = std::stoi(found[1]) + 1;
  }
  return mib;
}

TEST(LmsStats, CountWhatAnAllocatorReclaimed) {
  const TemporaryFolder folder;
  const LmsRun trained =
      lms_train({"--lms", "--device_memory_mb=" + std::to_string(least_mib_of("reclaim")),
                 "--emulate_link_gbps=2", "--lms_policy=reclaim", "--lms_stats",
                 "--output_dir=" + folder.path().string()});
  ASSERT_EQ(trained.run.status, 0) << trained.run.err;
  std::istringstream row(lines_of(read_file(folder / "resnet20_lms_stats.csv")).at(1));
  std::vector<std::string> fields;
  for (std::string field; std::getline(row, field, ',');) {
    fields.push_back(field);
  }
  ASSERT_EQ(fields.size(), 8U);
  const int ones = std::stoi(fields[5]), alls = std::stoi(fields[6]);
  EXPECT_GT(ones, 0);
  EXPECT_GT(alls, 0);
  const std::regex line("reclaim_one ([0-9]+), reclaim_fragments ([0-9]+)");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(trained.run.err, found, line)) << trained.run.err;
  EXPECT_LE(ones, std::stoi(found[1]));
  EXPECT_LE(ones + alls, std::stoi(found[1]) + std::stoi(found[2]));
}

TEST(LmsMeasured, SaysWhatStepsWaitedForAndWhatTheLinkGave) {
  // The link is slow enough to dominate: 30 MB each way take at least 0.1 s.
  const LmsRun trained = lms_train(
      {"--lms", "--device_memory_mb=50", "--emulate_link_gbps=0.5,0.25", "--lms_recompute=off"});
  ASSERT_EQ(trained.run.status, 0) << trained.run.err;
  const json& plan = trained.result.at("plan").at("lms");
  EXPECT_EQ(plan.at("measured_out_bytes"), plan.at("swapped_out_bytes"));
  EXPECT_EQ(plan.at("measured_in_bytes"), plan.at("swapped_in_bytes"));
  EXPECT_LE(plan.at("measured_out_bytes_per_second").get<double>(), 0.5e9 * 1.01);
  EXPECT_LE(plan.at("measured_in_bytes_per_second").get<double>(), 0.25e9 * 1.01);
  const json& stalls = plan.at("stall_seconds");
  const double waited = stalls.at("swap_in").get<double>() + stalls.at("memory").get<double>();
  EXPECT_GT(waited, 0);
  EXPECT_LT(waited + stalls.at("other").get<double>(),
            plan.at("measured_step_seconds").get<double>() * 3);
  EXPECT_THAT(trained.run.err, HasSubstr("[LMS][0] measured stalls "));
  EXPECT_THAT(trained.run.err, HasSubstr("ms waiting for swap-ins, "));
}

// The user waits for this time. Compiling the step takes longer than reading its plan.
TEST(LmsPlanningTime, CountsFromTheStartOfTheProcessAlsoByAFile) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  for (const char* flag : {"--lms_plan_out=", "--lms_plan_file="}) {
    const LmsRun run = lms_train({"--lms", "--lms_limit=50", "--lms_simulate_only", flag + plan});
    ASSERT_EQ(run.run.status, 0) << run.run.err;
    const double seconds = run.result.at("plan").at("lms").at("planning_seconds").get<double>();
    EXPECT_GE(seconds, run.result.at("start").at("plan").get<double>()) << flag;
    EXPECT_THAT(run.run.err, testing::ContainsRegex("planned in [0-9]+ ms"));
  }
}

}  // namespace
}  // namespace cnn::tests
