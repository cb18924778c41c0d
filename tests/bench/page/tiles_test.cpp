#include "bench/page/tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/compare/runs.h"

namespace cnn::page {
namespace {

using compare::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Tiles, LeaveOutWhatTheResultLacks) {
  EXPECT_THAT(tiles_of(Json::object()), Not(HasSubstr("<b>")));
  const Json json{{"summary", {{"median_step_seconds", 0.1}}}};
  EXPECT_THAT(tiles_of(json),
              AllOf(HasSubstr("<b>100.00 ms</b>median step"), Not(HasSubstr("images/sec"))));
}

}  // namespace
}  // namespace cnn::page
