#include "bench/report/steps_csv.h"

#include <gtest/gtest.h>
#include <limits>

namespace cnn::bench {
namespace {

constexpr const char* titles =
    "step,seconds,images_per_sec,ended,loss,base_loss,total_loss,learning_rate,input_wait_seconds,"
    "top_1,top_5,disturbed,profiled\n";

TEST(StepsCsv, HasALineOfTitlesAndOneForEachStep) {
  const Json steps = {{{"step", 1}, {"seconds", 0.25}, {"loss", 7.5}, {"disturbed", true}},
                      {{"step", 2},
                       {"seconds", 0.5},
                       {"loss", std::numeric_limits<double>::quiet_NaN()},
                       {"top_1", nullptr}}};
  EXPECT_EQ(steps_csv({{"steps", steps}}),
            std::string(titles) + "1,0.25,,,7.5,,,,,,,true,\n2,0.5,,,,,,,,,,,\n");
}

TEST(StepsCsv, HasItsTitlesWithoutSteps) {
  EXPECT_EQ(steps_csv({{"steps", Json::array()}}), titles);
  EXPECT_EQ(steps_csv(Json::object()), titles);
}

}  // namespace
}  // namespace cnn::bench
