#include "bench/run/roofline_report.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "bench/session/session.h"
#include "bench/session/team.h"
#include "runtime/cpu/device.h"
#include "tests/bench/session/small_team.h"

namespace cnn::bench {
namespace {

// Returns the summary with the roofline of a device that has no kernels to measure.
Json summary_with_roofline(const std::string& flag, const Json& summary, std::string& notes) {
  const tests::SmallTeam run({flag});
  Backend unable;
  unable.device = std::make_unique<CpuDevice>();
  Console console;
  Json result{{"summary", summary}};
  testing::internal::CaptureStderr();
  EXPECT_FALSE(add_roofline(run.job, unable, run.team.first().plan(), console, result));
  notes = testing::internal::GetCapturedStderr();
  return result["summary"];
}

TEST(RooflineReport, SaysWhyItCouldNotMeasureAndLosesNothingElse) {
  std::string notes;
  const Json summary{{"median_step_seconds", 0.5}, {"percent_of_roofline", nullptr}};
  EXPECT_EQ(summary_with_roofline("--measure_ceilings", summary, notes), summary);
  EXPECT_NE(notes, "");
}

TEST(RooflineReport, MeasuresNothingWhereNothingWasTimedOrTheFlagSaysSo) {
  std::string notes;
  EXPECT_TRUE(summary_with_roofline("--measure_ceilings", nullptr, notes).is_null());
  EXPECT_EQ(notes, "");
  const Json summary{{"median_step_seconds", 0.5}};
  EXPECT_EQ(summary_with_roofline("--nomeasure_ceilings", summary, notes), summary);
  EXPECT_EQ(notes, "");
}

}  // namespace
}  // namespace cnn::bench
