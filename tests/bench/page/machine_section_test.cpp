#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/page/run_sections.h"

namespace cnn::page {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string bounds_of_one(const Json& json) {
  const ShownRun runs[] = {{"run", "a", &json}};
  return bound_section(runs);
}

TEST(BoundSection, IsEmptyWhereNoBoundIsKnown) {
  EXPECT_EQ(bounds_of_one({}), "");
  EXPECT_EQ(bounds_of_one({{"plan", {{"lower_bound_bytes", 9}}}}), "")
      << "the reached value is missing";
  EXPECT_EQ(bounds_of_one({{"plan", {{"lower_bound_bytes", 9}, {"arena_bytes", 0}}}}), "");
}

TEST(BoundSection, ShowsTheShareOfEachBound) {
  const Json json{{"summary", {{"percent_of_roofline", 66.5}}},
                  {"plan",
                   {{"lower_bound_bytes", 1536},
                    {"arena_bytes", 2048},
                    {"lms", {{"lower_bound_seconds", 0.1}, {"measured_step_seconds", 0.4}}}}}};
  EXPECT_THAT(bounds_of_one(json),
              AllOf(HasSubstr("share of the roofline of the device: 66.5 %"),
                    HasSubstr("run: memory: limit 1.5 KiB, reached 2.0 KiB: 75.0 %"),
                    HasSubstr("run: LMS: limit 0.1, reached 0.4: 25.0 %")));
}

TEST(BoundSection, DrawsEachRunInItsColour) {
  const Json json{{"summary", {{"percent_of_roofline", 50}}}};
  const ShownRun runs[] = {{"base", "a", &json}, {"new", "b", &json}};
  EXPECT_THAT(bound_section(runs),
              AllOf(HasSubstr("class=\"bar a\""), HasSubstr("class=\"bar b\"")));
}

TEST(MachineSection, MarksWhatIsUnlikeInTwoRuns) {
  const Json base{{"commit", "same"}, {"machine", {{"libraries", {{"oneDNN", "3.2"}}}}}};
  const Json candidate{{"commit", "same"}, {"machine", {{"libraries", {{"oneDNN", "3.4"}}}}}};
  const ShownRun runs[] = {{"base", "a", &base}, {"new", "b", &candidate}};
  EXPECT_THAT(machine_section(runs),
              AllOf(HasSubstr("<tr class=\"unlike\"><td class=\"name\">libraries oneDNN</td><td "
                              "class=\"name\">3.2</td><td class=\"name\">3.4</td></tr>"),
                    HasSubstr("<tr><td class=\"name\">commit</td>"), HasSubstr("marked: unlike")));
}

TEST(MachineSection, MarksWhatOnlyOneRunTells) {
  const Json base{{"machine", {{"gpu", {{"name", "H200"}}}}}}, candidate{{"commit", "c"}};
  const ShownRun runs[] = {{"base", "a", &base}, {"new", "b", &candidate}};
  EXPECT_THAT(machine_section(runs),
              HasSubstr("<tr class=\"unlike\"><td class=\"name\">gpu name</td><td "
                        "class=\"name\">H200</td><td class=\"name\"></td></tr>"));
}

TEST(MachineSection, ShowsTheCommandAndLeavesOutWhatIsEmpty) {
  const Json json{{"command", {"cnn_benchmarks", "--model=<x>"}}, {"machine", {{"gpu", nullptr}}}};
  const ShownRun runs[] = {{"run", "a", &json}};
  EXPECT_THAT(machine_section(runs),
              AllOf(HasSubstr("cnn_benchmarks --model=&lt;x&gt;"), Not(HasSubstr(">gpu<")),
                    Not(HasSubstr(">commit<")), Not(HasSubstr("unlike"))));
}

}  // namespace
}  // namespace cnn::page
