#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/page/run_sections.h"

namespace cnn::page {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Json measured_span{{"name", "conv"}, {"start", 0.01}, {"end", 0.02}};

Json lane_of(const char* name, const Json& spans) { return {{"lane", name}, {"spans", spans}}; }

std::string lanes_of_one(const Json& profile) {
  const Json json{{"profile", profile}};
  const ShownRun runs[] = {{"run", "a", &json}};
  return lane_section(runs);
}

TEST(LaneSection, IsEmptyWhereNoLaneHasASpan) {
  EXPECT_EQ(lanes_of_one({}), "");
  EXPECT_EQ(lanes_of_one({{"lanes", Json::array({lane_of("compute", Json::array())})}}), "");
}

TEST(LaneSection, ShowsEachSpanWithItsDuration) {
  const std::string section =
      lanes_of_one({{"lanes", Json::array({lane_of("compute", {measured_span, measured_span})})}});
  EXPECT_THAT(section, AllOf(HasSubstr("conv: 10.000 ms"), HasSubstr("class=\"bar a\""),
                             HasSubstr("class=\"bar a odd\"")));
  EXPECT_THAT(section, AllOf(Not(HasSubstr("planned")), Not(HasSubstr(", plan"))));
}

TEST(LaneSection, PutsThePlanAboveWhatWasMeasured) {
  Json span = measured_span;
  span["planned_start"] = 0.0;
  span["planned_end"] = 0.015;
  const std::string section =
      lanes_of_one({{"lanes", Json::array({lane_of("compute", Json::array({span}))})}});
  EXPECT_THAT(section, AllOf(HasSubstr("conv: 15.000 ms"), HasSubstr("plan beside measured"),
                             HasSubstr("</span>as planned")));
  EXPECT_LT(section.find(">compute, plan<"), section.find(">compute<"));
}

TEST(LaneSection, ShowsTheFirstEightOfManyRanks) {
  Json ranks = Json::array();
  for (int rank = 0; rank < 10; ++rank) {
    ranks.push_back(
        {{"lanes", Json::array({lane_of("communicate", Json::array({measured_span}))})}});
  }
  EXPECT_THAT(lanes_of_one({{"ranks", ranks}}),
              AllOf(HasSubstr(">rank 0, communicate<"), HasSubstr(">rank 7, communicate<"),
                    Not(HasSubstr("rank 8"))));
}

TEST(LaneSection, ExplainsTheLanesThatAreThere) {
  EXPECT_THAT(
      lanes_of_one({{"lanes", Json::array({lane_of("copy_out", Json::array({measured_span}))})}}),
      AllOf(HasSubstr("copy_out: copies to the host"), Not(HasSubstr("copy_in:")),
            Not(HasSubstr("compute:"))));
}

}  // namespace
}  // namespace cnn::page
