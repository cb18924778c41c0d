#include "bench/plan/lms_refusal.h"

#include <cstddef>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/flags/config.h"
#include "bench/machine/step_costs.h"
#include "bench/plan/device_memory.h"
#include "bench/plan/job.h"
#include "bench/ranks/rank_context.h"
#include "tests/support/swapping_step.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t refusal_mib = std::size_t{1} << 20U;

// A device of 100 MiB on a host with 50 MiB, of which a plan may use 40. The report says why a plan
// fails.
struct RefusedPlan {
  RefusedPlan() {
    backend.memory = {.device = 100 * refusal_mib, .host = 50 * refusal_mib, .text = "a device"};
    report.policy = "tflms1";
    report.fits = false;
  }
  std::string text(std::size_t needed = 120 * refusal_mib) const {
    const RankContext context = only_rank(backend);
    LmsPlanner planner(config, context, DeviceMemory{.staged = staged});
    const StepPlan step = tests::swapping_plan();
    planner.keep(report, step, expected_costs(step, backend));
    return lms_refusal(planner, step, needed, config.lms, context);
  }

  Config config;
  Backend backend;
  LmsReport report;
  std::size_t staged = 0;
};

TEST(LmsRefusal, NamesTheLargestOperationWhereNoPlanFits) {
  RefusedPlan refused;
  refused.report.floor = 110 * refusal_mib;
  refused.report.resident = 30 * refusal_mib;
  EXPECT_THAT(
      refused.text(),
      AllOf(HasSubstr("a step needs 110.00 MiB (115343360 bytes), 30.00 MiB (31457280 bytes) "
                      "of that for variables"),
            HasSubstr(" alone takes "),
            HasSubstr("100.00 MiB (104857600 bytes) are there (a device)"),
            EndsWith("use a smaller --batch_size or --image_size; tensors of fewer than 1024 KB "
                     "stay: a smaller --lms_size_threshold lets more leave")));
}

TEST(LmsRefusal, TellsStagedInputFromVariables) {
  RefusedPlan refused;
  refused.report.floor = 110 * refusal_mib;
  refused.report.resident = 30 * refusal_mib;
  refused.staged = 4 * refusal_mib;
  EXPECT_THAT(refused.text(),
              HasSubstr("a step needs 110.00 MiB (115343360 bytes), 26.00 MiB (27262976 bytes) of "
                        "that for variables and 4.00 MiB (4194304 bytes) for staged input; "));
}

TEST(LmsRefusal, NamesTheFlagsThatKeepTensorsOnTheDevice) {
  RefusedPlan refused;
  refused.report.floor = 110 * refusal_mib;
  LmsFlags& flags = refused.config.lms;
  flags.options.n_tensors = 3;
  flags.options.recompute = lms::Recomputation::off;
  flags.size_threshold = 64;
  flags.variables = LmsVariables::off;
  flags.options.excluded_types = {"conv"};
  EXPECT_THAT(refused.text(),
              EndsWith("or leave out --lms_n_tensors=3, --lms_recompute=off, "
                       "--lms_variables=off, --lms_excl_types, which let less leave the device; "
                       "tensors of fewer than 64 KB stay: a smaller --lms_size_threshold lets more "
                       "leave"));
}

TEST(LmsRefusal, DoesNotAdviseAgainstTheLeastSizeThreshold) {
  RefusedPlan refused;
  refused.report.floor = 110 * refusal_mib;
  refused.config.lms.size_threshold = 1;
  EXPECT_THAT(refused.text(), Not(HasSubstr("--lms_size_threshold")));
}

TEST(LmsRefusal, NamesTheFlagsThatRestrictAPolicy) {
  RefusedPlan refused;
  refused.config.lms.size_threshold = 1;
  refused.config.lms.options.recompute = lms::Recomputation::cheap;
  refused.config.lms.options.frac = 0.5;
  for (const char* policy : {"recompute", "dtr", "superneurons"}) {
    refused.report.policy = policy;
    EXPECT_THAT(refused.text(),
                EndsWith("may need less, or leave out --lms_recompute=cheap, which let less leave "
                         "the device"));
  }
  refused.report.policy = "caffe";
  EXPECT_THAT(refused.text(), EndsWith("may need less, or leave out --lms_frac=0.5, which let less "
                                       "leave the device"));
}

TEST(LmsRefusal, SaysThatACpuComputesInTheMemoryToWhichAPlanMoves) {
  RefusedPlan refused;
  refused.report.host = 10 * refusal_mib;
  EXPECT_THAT(refused.text(), Not(HasSubstr("to the host")));
  refused.backend.memory.host.reset();
  EXPECT_THAT(refused.text(),
              AllOf(HasSubstr("the plan of tflms1 moves 10.00 MiB"),
                    HasSubstr("--device_memory_mb"), HasSubstr("--lms_policy=planned")));
}

TEST(LmsRefusal, NamesTheLimitOfTheHost) {
  RefusedPlan refused;
  refused.report.host = 41 * refusal_mib;
  EXPECT_THAT(refused.text(), AllOf(HasSubstr("moves 41.00 MiB"), HasSubstr("has 40.00 MiB"),
                                    HasSubstr("raise --lms_host_limit")));
}

TEST(LmsRefusal, SaysWhereMoreRoomOnTheHostMayHelp) {
  RefusedPlan refused;
  refused.report.floor = 110 * refusal_mib;
  refused.report.resident = 30 * refusal_mib;
  refused.report.need = 70 * refusal_mib;
  EXPECT_THAT(refused.text(), Not(HasSubstr("--lms_host_limit")))
      << "the host's 40 MiB take all that is not a variable";
  refused.report.need = 71 * refusal_mib;
  EXPECT_THAT(refused.text(), EndsWith("; what leaves has 40.00 MiB (41943040 bytes): raise "
                                       "--lms_host_limit or give --lms_disk a folder, which may "
                                       "need less"));
  refused.config.lms.disk = "/here";
  EXPECT_THAT(refused.text(), EndsWith("raise --lms_host_limit, which may need less"));
  refused.backend.memory.host.reset();
  EXPECT_THAT(refused.text(), Not(HasSubstr("--lms_host_limit"))) << "nothing can leave a CPU";
}

TEST(LmsRefusal, NamesTheFileOfAPlanThatTheHostHasNoRoomFor) {
  RefusedPlan refused;
  refused.report.host = 41 * refusal_mib;
  refused.report.file = "plan.json";
  EXPECT_THAT(refused.text(), HasSubstr("the plan of plan.json moves 41.00 MiB"));
}

TEST(LmsRefusal, TellsAPlanOfAFileFromAPolicyAndBothFromEvaluation) {
  RefusedPlan refused;
  EXPECT_THAT(refused.text(), AllOf(HasSubstr("the policy tflms1 needs 120.00 MiB"),
                                    HasSubstr("--lms_policy=planned may need less; tensors of "
                                              "fewer than 1024 KB stay")));
  refused.report.policy = "planned";
  EXPECT_THAT(refused.text(), HasSubstr("(a device): use a smaller --batch_size; tensors"));
  for (const char* file : {"", "plan.json"}) {
    refused.report.file = file;
    refused.report.fits = true;
    EXPECT_THAT(refused.text(),
                AllOf(HasSubstr("evaluation and checkpoints need 120.00 MiB"),
                      EndsWith("--eval_batch_size, or --batch_size where it is not given")));
  }
  refused.report.fits = false;
  EXPECT_THAT(refused.text(), AllOf(HasSubstr("the plan of plan.json needs 120.00 MiB"),
                                    EndsWith("make one for this budget with --lms_plan_out")));
}

TEST(EvaluationRefusal, NamesTheBatchOfAnEvaluationBeyondTheBudget) {
  Config config;
  config.eval.batch = 4000;
  Job job;
  job.config = &config;
  Backend backend;
  backend.memory = {.device = 100 * refusal_mib, .text = "a device"};
  const LmsPlanner planner(config, only_rank(backend), DeviceMemory{});
  Programs programs;
  programs.evaluation.emplace().plan.memory.device_bytes = 90 * refusal_mib;
  DeviceMemory memory{.variables = 4 * refusal_mib, .staged = 6 * refusal_mib};
  EXPECT_EQ(evaluation_refusal(job, programs, memory, planner), "") << "it fits exactly";
  memory.staged = 7 * refusal_mib;
  EXPECT_EQ(evaluation_refusal(job, programs, memory, planner),
            "its evaluation needs 101.00 MiB (105906176 bytes), 100.00 MiB (104857600 bytes) are "
            "there (a device): use a smaller --eval_batch_size");
  config.eval.batch = 0;
  EXPECT_EQ(evaluation_refusal(job, programs, memory, planner), "")
      << "its batch is that of the training";
  config.eval.batch = 4000;
  programs.evaluation.reset();
  EXPECT_EQ(evaluation_refusal(job, programs, memory, planner), "");
}

// A job of 32 images in which most forward nodes can compute in slices.
struct AdvisedJob {
  AdvisedJob() {
    job.config = &config;
    job.batch.per_device = 32;
  }
  std::string advice(std::int64_t slices, std::size_t sliceable = 9) const {
    return slices_advice(job, {.slices = slices, .sliceable = sliceable, .forward_nodes = 10});
  }

  Config config;
  Job job;
};

TEST(SlicesAdvice, DoublesTheSlicesButNotBeyondTheBatch) {
  AdvisedJob advised;
  EXPECT_THAT(advised.advice(1), HasSubstr("--lms_slices=8 may need less"));
  EXPECT_THAT(advised.advice(8), HasSubstr("--lms_slices=16 "));
  EXPECT_THAT(advised.advice(20), HasSubstr("--lms_slices=32 "));
  EXPECT_EQ(advised.advice(32), "");
}

TEST(SlicesAdvice, IsNotGivenWhereSlicesDoNotHelpOrAreChosenAnyway) {
  AdvisedJob advised;
  EXPECT_EQ(advised.advice(1, 5), "") << "only half of the nodes can compute in slices";
  advised.config.lms.variants = LmsVariants::any;
  advised.config.lms.slices.count.reset();
  EXPECT_EQ(advised.advice(1), "") << "the search tries slices by itself";
  advised.config.lms.slices.count = 1;
  EXPECT_NE(advised.advice(1), "") << "a flag has fixed the slices";
}

TEST(SlicesAdvice, NamesSlicesOfRowsWhereTheBatchHasNoMore) {
  AdvisedJob advised;
  layers::Slicing slicing{
      .slices = 32, .sliceable = 9, .forward_nodes = 10, .row_sliceable = 9, .rows = 12};
  EXPECT_THAT(slices_advice(advised.job, slicing), HasSubstr("--lms_row_slices=8 may need less"));
  slicing.row_slices = 8;
  EXPECT_THAT(slices_advice(advised.job, slicing), HasSubstr("--lms_row_slices=12 "));
  slicing.row_slices = 12;
  EXPECT_EQ(slices_advice(advised.job, slicing), "");
  slicing = {.slices = 32, .sliceable = 9, .forward_nodes = 10, .row_sliceable = 5, .rows = 12};
  EXPECT_EQ(slices_advice(advised.job, slicing), "") << "only half of the nodes compute rows";
}

TEST(SlicesAdvice, NamesSlicesOfDenseLayersWhoseWeightsLieOnTheHost) {
  AdvisedJob advised;
  layers::Slicing slicing{.slices = 32, .sliceable = 9, .forward_nodes = 10, .dense_sliceable = 2};
  EXPECT_THAT(slices_advice(advised.job, slicing),
              HasSubstr("; --lms_variables=on with --lms_dense_slices=8 may need less"));
  advised.config.lms.variables = LmsVariables::on;
  EXPECT_THAT(slices_advice(advised.job, slicing),
              HasSubstr("; --lms_dense_slices=8 may need less"));
  slicing.slices = 1;
  EXPECT_THAT(slices_advice(advised.job, slicing),
              AllOf(HasSubstr("--lms_slices=8 may"), HasSubstr("--lms_dense_slices=8 may")));
  slicing = {.slices = 32, .sliceable = 9, .forward_nodes = 10, .dense_slices = 8};
  slicing.dense_sliceable = 2;
  EXPECT_EQ(slices_advice(advised.job, slicing), "");
}

TEST(LmsRefusal, AsksForADiskOrForALargerOne) {
  RefusedPlan refused;
  refused.report.host = 41 * refusal_mib;
  EXPECT_THAT(refused.text(), HasSubstr("give --lms_disk a folder for the rest"));
  refused.config.lms.disk = "/here";
  EXPECT_THAT(refused.text(), Not(HasSubstr("give --lms_disk")));
  refused.report.host = 0;
  refused.report.disk = 3 * refusal_mib;
  EXPECT_THAT(refused.text(),
              AllOf(HasSubstr("the plan of tflms1 moves 3.00 MiB"), HasSubstr("to a disk"),
                    HasSubstr("--lms_disk=/here has 0 bytes"), EndsWith("use another folder")));
  refused.config.lms.disk.reset();
  EXPECT_THAT(refused.text(), EndsWith("so it needs --lms_disk with a folder"));
}

}  // namespace
}  // namespace cnn::bench
