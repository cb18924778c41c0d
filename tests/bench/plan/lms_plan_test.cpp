#include "bench/plan/lms_plan.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "bench/flags/config.h"
#include "bench/machine/step_costs.h"
#include "bench/plan/device_memory.h"
#include "bench/ranks/rank_context.h"
#include "tests/support/error_of.h"
#include "tests/support/swapping_step.h"

namespace cnn::bench {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t one_mib = std::size_t{1} << 20U;

TEST(ExpectedCosts, GoByWhatIsExpectedOfTheDeviceAndItsLink) {
  const StepPlan plan = tests::swapping_plan();
  Backend backend;
  const Costs of_one_core = expected_costs(plan, backend);
  backend.expected = Ceilings{.flops_per_second = 800e12, .bytes_per_second = 3e12};
  backend.link = Link{.out = 50e9, .in = 40e9, .both = 60e9};
  const Costs costs = expected_costs(plan, backend);
  const std::vector<NodeCost> nodes = node_costs(*plan.graph, *backend.expected, plan.specs);
  ASSERT_EQ(costs.seconds.size(), nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    EXPECT_EQ(costs.seconds[n], nodes[n].seconds);
    EXPECT_LT(costs.seconds[n], of_one_core.seconds[n]);
  }
  EXPECT_EQ(costs.out_bytes_per_second, 50e9);
  EXPECT_EQ(costs.in_bytes_per_second, 40e9);
  EXPECT_EQ(costs.both_bytes_per_second, 60e9);
}

// A device of 100 MiB on a host with 50 MiB.
struct PlannedDevice {
  PlannedDevice() {
    backend.memory = {.device = 100 * one_mib, .host = 50 * one_mib, .text = "a device"};
  }
  LmsPlanner planner(std::size_t resident_bytes = 0) const {
    return {config, only_rank(backend), DeviceMemory{.variables = resident_bytes}};
  }

  Config config;
  Backend backend;
};

TEST(LmsPlanner, TakesTheWholeDeviceUnlessFlagsSayLess) {
  PlannedDevice device;
  EXPECT_EQ(device.planner().budget(), 100 * one_mib);
  EXPECT_EQ(device.planner().budget_source(), "a device");
  device.config.lms.exclude = 20;
  device.config.lms.mem_ratio = 0.5;
  EXPECT_EQ(device.planner().budget(), 40 * one_mib);
  EXPECT_EQ(device.planner().budget_source(),
            "a device, less --lms_exclude=20, times --lms_mem_ratio=0.5");
  device.config.lms.limit = 30;
  EXPECT_EQ(device.planner().budget(), 30 * one_mib);
  EXPECT_EQ(device.planner().budget_source(), "--lms_limit=30");
}

TEST(LmsPlanner, HasItsArenaBesideWhatStaysOnTheDevice) {
  const PlannedDevice device;
  EXPECT_EQ(device.planner(30 * one_mib).limits().device, 70 * one_mib);
}

TEST(LmsPlanner, RefusesToLeaveNothingOfTheDevice) {
  PlannedDevice device;
  device.config.lms.exclude = 100;
  EXPECT_EQ(tests::error_of([&] { device.planner(); }),
            "--lms_exclude=100 leaves nothing of the device's 100 MiB");
}

TEST(LmsPlanner, SaysThatALimitBeyondTheDeviceDoesNotAct) {
  PlannedDevice device;
  device.config.lms.exclude = 20;
  device.config.lms.limit = 90;
  LmsPlanner planner = device.planner();
  EXPECT_EQ(planner.budget(), 80 * one_mib);
  const StepPlan step = tests::swapping_plan();
  planner.plan(step, expected_costs(step, device.backend), false);
  EXPECT_THAT(lms_lines(planner.report(), 0),
              Contains("[LMS][0] --lms_limit=90 does not act: 80 MiB are there (a device, less "
                       "--lms_exclude=20)"));
}

TEST(LmsPlanner, SaysThatMemoryLeftFreeByALimitIsNotExcludedAgain) {
  for (const int limit : {60, 80}) {
    PlannedDevice device;
    device.config.lms.exclude = 20;
    device.config.lms.limit = limit;
    LmsPlanner planner = device.planner();
    EXPECT_EQ(planner.budget(), static_cast<std::size_t>(limit) * one_mib);
    const StepPlan step = tests::swapping_plan();
    planner.plan(step, expected_costs(step, device.backend), false);
    EXPECT_THAT(lms_lines(planner.report(), 0),
                Contains("[LMS][0] --lms_exclude=20 does not act: --lms_limit=" +
                         std::to_string(limit) + " leaves no less memory free"));
  }
}

TEST(LmsPlanner, KeepsAPlanWithTheTimeOfTheLatestPlanning) {
  const PlannedDevice device;
  LmsPlanner planner = device.planner();
  const StepPlan step = tests::swapping_plan();
  const Costs costs = expected_costs(step, device.backend);
  planner.plan(step, costs, true);
  LmsReport former = planner.report();
  former.planning_seconds = 1000;
  planner.keep(former, step, costs);
  EXPECT_LT(planner.report().planning_seconds, 1000);
}

TEST(LmsPlanner, MovesToFourFifthsOfTheFreeHostUnlessALimitIsGiven) {
  PlannedDevice device;
  EXPECT_EQ(device.planner().limits().host, 40 * one_mib);
  device.config.lms.host_limit = 10;
  EXPECT_EQ(device.planner().limits().host, 10 * one_mib);
  device.config.lms.host_limit = 2'000'000'000;
  EXPECT_EQ(device.planner().limits().host, 50 * one_mib);
  device.backend.memory.host.reset();
  EXPECT_EQ(device.planner().limits().host, 0U) << "the device computes in host memory";
}

// Sets the original's variable TF_GPU_HOST_MEM_LIMIT_IN_MB until the end of the scope.
class HostLimitVariable {
 public:
  explicit HostLimitVariable(const char* value) { setenv("TF_GPU_HOST_MEM_LIMIT_IN_MB", value, 1); }
  ~HostLimitVariable() { unsetenv("TF_GPU_HOST_MEM_LIMIT_IN_MB"); }
  HostLimitVariable(const HostLimitVariable&) = delete;
  HostLimitVariable& operator=(const HostLimitVariable&) = delete;
};

TEST(LmsPlanner, TakesTheHostLimitFromTheOriginalsVariableWhereTheFlagIsNotGiven) {
  PlannedDevice device;
  const HostLimitVariable limit("30");
  EXPECT_EQ(device.planner().limits().host, 30 * one_mib);
  device.config.lms.host_limit = 20;
  EXPECT_EQ(device.planner().limits().host, 20 * one_mib);
}

TEST(LmsPlanner, TakesAHugeHostLimitForAllThatIsFree) {
  const HostLimitVariable limit("17592186044417");  // its bytes would overflow 64 bits to 1 MiB
  EXPECT_EQ(PlannedDevice().planner().limits().host, 50 * one_mib);
}

TEST(LmsPlanner, RefusesAHostLimitThatIsNoNumberOfMegabytes) {
  for (const char* const text : {"0", "-5", "12abc", "", "1e3", "99999999999999999999"}) {
    const HostLimitVariable limit(text);
    EXPECT_THAT(tests::error_of([] { PlannedDevice().planner(); }),
                StartsWith("TF_GPU_HOST_MEM_LIMIT_IN_MB=" + std::string(text) + " is no "))
        << text;
  }
}

TEST(LmsPlanner, GoesByTheSavedPlanOfAnother) {
  const PlannedDevice device;
  const StepPlan step = tests::swapping_plan();
  const Costs costs = expected_costs(step, device.backend);
  LmsPlanner first = device.planner(), second = device.planner();
  const StepPlan planned = first.plan(step, costs, false);
  EXPECT_FALSE(first.report().active()) << "it fits";
  second.use(first.latest(), "plan.json");
  EXPECT_EQ(to_string(second.plan(step, costs, false)), to_string(planned));
  EXPECT_TRUE(second.report().active()) << "the second planner adopted a plan";
  EXPECT_EQ(second.report().file, "plan.json");
}

TEST(LmsPlanner, NamesTheFileWhosePlanIsForAnotherStep) {
  const PlannedDevice device;
  const StepPlan step = tests::swapping_plan();
  const Costs costs = expected_costs(step, device.backend);
  SavedPlan other;
  other.schedule.steps = {{.action = Compute{NodeId{3}}}};
  LmsPlanner of_file = device.planner(), of_rank = device.planner();
  of_file.use(other, "plan.json");
  EXPECT_THAT(tests::error_of([&] { of_file.plan(step, costs, false); }),
              StartsWith("--lms_plan_file=plan.json: "));
  of_rank.use(other);
  EXPECT_THAT(tests::error_of([&] { of_rank.plan(step, costs, false); }),
              testing::AllOf(testing::Not(""), testing::Not(HasSubstr("--lms_plan_file"))));
}

TEST(LmsPlanner, RefusesAPlanWithVariablesOnTheHostWhereTheStepHasNone) {
  const PlannedDevice device;
  const StepPlan step = tests::swapping_plan();
  const Costs costs = expected_costs(step, device.backend);
  LmsPlanner planner = device.planner();
  SavedPlan plan{.host_variables = true, .schedule = step.schedule};
  planner.use(plan, "plan.json");
  EXPECT_EQ(tests::error_of([&] { planner.plan(step, costs, false); }),
            "--lms_plan_file=plan.json: \"host_variables\" is true, but no variable of this step "
            "can lie on the host; make one for this run with --lms_plan_out");
  plan.host_variables = false;
  planner.use(plan, "plan.json");
  EXPECT_EQ(tests::error_of([&] { planner.plan(step, costs, false); }), "");
}

LmsReport report_of_gib(std::size_t need) {
  LmsReport report;
  report.policy = "planned";
  report.budget = std::size_t{1} << 30U;
  report.need = need << 30U;
  report.necessary = need > 1;
  report.peak = report.live_peak = report.floor = report.budget;
  report.compute_seconds = report.lower_bound_seconds = 0.25;
  report.predicted_seconds = 0.5;
  return report;
}

TEST(LmsLines, SayThatNothingNeedsToMove) {
  EXPECT_THAT(lms_lines(report_of_gib(1), 0),
              ElementsAre("[LMS][0] LMS is not necessary. Turned LMS off.",
                          "[LMS][0] budget 1024 MiB, need 1024 MiB"));
}

TEST(LmsLines, HaveTheNotesOfThePolicyUpToTheLevelAskedFor) {
  LmsReport report = report_of_gib(1);
  report.notes = {{.level = 0, .text = "always"}, {.level = 1, .text = "asked for"}};
  EXPECT_THAT(lms_lines(report, -1), testing::SizeIs(2));
  EXPECT_EQ(lms_lines(report, 0)[0], "[LMS][0] always");
  EXPECT_EQ(lms_lines(report, 1)[1], "[LMS][1] asked for");
  report.policy = "caffe";
  EXPECT_EQ(lms_lines(report, 1)[1], "[LMS:0] asked for");
  report.note_prefix = "I0821 04:26:41.953693 60726 syncedmem.cpp:349] ";
  EXPECT_EQ(lms_lines(report, 1)[1], report.note_prefix + "[LMS:0] asked for");
  EXPECT_THAT(lms_lines(report, 1)[2], StartsWith("[LMS][0] LMS is not necessary"));
}

TEST(LmsLines, TellTimesAndWhetherTheyWereMeasured) {
  LmsReport report = report_of_gib(2);
  EXPECT_THAT(lms_lines(report, 0),
              Contains("[LMS][0] predicted step 500.0 ms (compute 250.0, stalls 250.0), lower "
                       "bound 250.0 ms, gap 100.0 %"));
  EXPECT_THAT(lms_lines(report, 0).back(), HasSubstr("not measured here"));
  report.measured = true;
  EXPECT_THAT(lms_lines(report, 0), testing::Not(Contains(HasSubstr("not measured here"))));
  report.file = "plan.json";
  EXPECT_EQ(lms_lines(report, 0)[0],
            "[LMS][0] the plan is that of plan.json, as the policy planned made it");
}

TEST(LmsLines, SayHowMuchOfTheStepComputesInSlices) {
  LmsReport report = report_of_gib(2);
  EXPECT_THAT(lms_lines(report, 0), testing::Not(Contains(HasSubstr("slices"))));
  report.slicing = {.slices = 4, .sliceable = 12, .forward_nodes = 17};
  EXPECT_THAT(lms_lines(report, 0),
              Contains("[LMS][0] 4 slices along the batch, of 12 of 17 forward operations"));
  EXPECT_EQ(lms_json(report)["slices"], 4);
  EXPECT_EQ(lms_json(report)["sliced_operations"], 12);
  report.slicing.sliceable = 1;
  EXPECT_THAT(lms_lines(report, 0), Contains(HasSubstr("needs the whole batch")));
  report.slicing.sliceable = 0;
  EXPECT_THAT(lms_lines(report, 0), Contains(HasSubstr("--lms_slices=4 acts on nothing")));
  EXPECT_EQ(lms_json(report)["sliced_operations"], 0);
}

TEST(LmsLines, SayHowMuchOfTheStepComputesRowsOfImages) {
  LmsReport report = report_of_gib(2);
  report.slicing = {.forward_nodes = 17, .row_slices = 4, .row_sliceable = 12, .rows = 7};
  EXPECT_THAT(lms_lines(report, 0),
              Contains("[LMS][0] 4 slices along the rows of images, of 12 of 17 forward "
                       "operations"));
  EXPECT_EQ(lms_json(report)["row_slices"], 4);
  EXPECT_EQ(lms_json(report)["slices"], 1);
  report.slicing.row_slices = 16;
  EXPECT_THAT(lms_lines(report, 0), Contains("[LMS][0] 7 slices along the rows of images, of 12 of "
                                             "17 forward operations: the last map in slices has 7 "
                                             "rows"));
  EXPECT_EQ(lms_json(report)["row_slices"], 7);
  report.slicing.rows = 1;
  EXPECT_THAT(lms_lines(report, 0),
              Contains("[LMS][0] --lms_row_slices=16 acts on nothing: the last map that could come "
                       "in slices has one row"));
  report.slicing.row_sliceable = 0;
  EXPECT_THAT(lms_lines(report, 0),
              Contains("[LMS][0] --lms_row_slices=16 acts on nothing: a batch norm or another "
                       "operation needs whole images"));
}

TEST(LmsLines, SayHowManyDenseLayersComputeInSlices) {
  LmsReport report = report_of_gib(2);
  EXPECT_EQ(lms_json(report)["dense_slices"], 1);
  report.slicing.dense_slices = 8;
  EXPECT_THAT(lms_lines(report, 0), Contains("[LMS][0] --lms_dense_slices=8 acts on nothing: all "
                                             "variables lie on the device"));
  report.host_variable_bytes = 1 << 20;
  EXPECT_THAT(lms_lines(report, 0),
              Contains("[LMS][0] --lms_dense_slices=8 acts on nothing: no dense layer has weights "
                       "on the host that slices could halve"));
  EXPECT_EQ(lms_json(report)["dense_slices"], 1);
  report.slicing.dense_sliceable = 2;
  EXPECT_THAT(lms_lines(report, 0), Contains("[LMS][0] 8 slices of the inputs of 2 dense layers"));
  EXPECT_EQ(lms_json(report)["dense_slices"], 8);
}

TEST(LmsLines, SayHowManyVariablesLieOnTheHost) {
  LmsReport report = report_of_gib(2);
  EXPECT_THAT(lms_lines(report, 0), testing::Not(Contains(HasSubstr("on the host"))));
  EXPECT_EQ(lms_json(report)["host_variable_bytes"], 0);
  report.host_variable_bytes = std::size_t{3} << 20U;
  EXPECT_THAT(lms_lines(report, 0),
              Contains("[LMS][0] 3 MiB of variables lie on the host and are loaded and updated in "
                       "slices"));
  EXPECT_EQ(lms_json(report)["host_variable_bytes"], std::size_t{3} << 20U);
}

TEST(LmsJson, HasNullForWhatThereIsNot) {
  LmsReport report = report_of_gib(2);
  EXPECT_TRUE(lms_json(report)["plan_file"].is_null());
  EXPECT_TRUE(lms_json(report)["largest_join_bytes"].is_null());
  report.file = "plan.json";
  report.max_fused_grad_add_bytes = 5;
  EXPECT_EQ(lms_json(report)["plan_file"], "plan.json");
  EXPECT_EQ(lms_json(report)["largest_join_bytes"], 5);
}

DiskSpeed small_disk() {
  return {.label = "--lms_disk=/here",
          .folder = "/here",
          .is_direct = true,
          .free_bytes = 7 * one_mib,
          .write_bytes_per_second = 2e9,
          .read_bytes_per_second = 3e9};
}

TEST(LmsPlanner, PlansWithTheDiskThatWasMeasured) {
  PlannedDevice device;
  const StepPlan step = tests::swapping_plan();
  EXPECT_EQ(device.planner().limits().disk, 0U);
  EXPECT_EQ(expected_costs(step, device.backend).store_bytes_per_second, 0);
  device.backend.disk = small_disk();
  EXPECT_EQ(device.planner().limits().disk, 7 * one_mib);
  Costs costs = expected_costs(step, device.backend);
  EXPECT_EQ(costs.store_bytes_per_second, 2e9);
  EXPECT_EQ(costs.load_bytes_per_second, 3e9);
  costs.store_bytes_per_second = 1e9;  // as a step measured
  LmsPlanner planner = device.planner();
  planner.plan(step, costs, true);
  ASSERT_TRUE(planner.report().disk_speed);
  EXPECT_EQ(planner.report().disk_speed->write_bytes_per_second, 1e9);
}

TEST(LmsLines, SayWhatGoesOnToTheDisk) {
  LmsReport report = report_of_gib(2);
  EXPECT_THAT(lms_lines(report, 0), testing::Not(Contains(HasSubstr("disk"))));
  EXPECT_TRUE(lms_json(report)["disk"].is_null());
  report.disk_speed = small_disk();
  EXPECT_THAT(lms_lines(report, 0),
              Contains("[LMS][0] --lms_disk=/here: not needed, the host holds what is swapped"));
  report.summary = {.stored_tensors = 4, .bytes_stored = 1U << 30U, .bytes_loaded = 1U << 29U};
  report.disk = (1U << 30U) + 4096;
  EXPECT_THAT(
      lms_lines(report, 0),
      Contains("[LMS][0] --lms_disk=/here: 4 of the swapped tensors go on to the disk (1.00 "
               "GiB out, 0.50 GiB in) by direct I/O at 2.00 and 3.00 GB/s"));
  const Json disk = lms_json(report)["disk"];
  EXPECT_EQ(disk["folder"], "/here");
  EXPECT_EQ(disk["direct_io"], true);
  EXPECT_EQ(disk["swapped_tensors"], 4);
  EXPECT_EQ(disk["swapped_out_bytes"], 1U << 30U);
  EXPECT_EQ(disk["swapped_in_bytes"], 1U << 29U);
  EXPECT_EQ(disk["file_bytes"], (1U << 30U) + 4096);
  EXPECT_EQ(disk["out_bytes_per_second"], 2e9);
  EXPECT_EQ(disk["in_bytes_per_second"], 3e9);
}

}  // namespace
}  // namespace cnn::bench
