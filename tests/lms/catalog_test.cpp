#include "lms/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <string_view>

#include "tests/lms/problem.h"
#include "tests/support/error_of.h"

namespace cnn::lms {
namespace {

using testing::HasSubstr;

TEST(PolicyCatalog, FindsEachRowByItsOwnName) {
  std::set<std::string_view> names;
  for (const PolicyRow& row : policies()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    ASSERT_NE(row.plan, nullptr) << row.name;
    EXPECT_EQ(&find_policy(row.name), &row);
  }
}

// The planner decides itself which step waits for which copy, as no other policy does.
TEST(PolicyCatalog, LetsThePlannerAlonePlaceItsWaits) {
  for (const PolicyRow& row : policies()) {
    EXPECT_EQ(row.places_waits, row.name == "planned") << row.name;
  }
}

TEST(PolicyCatalog, ListsAllNamesInTheErrorForAnUnknownOne) {
  const std::string error = tests::error_of([] { find_policy("lru"); });
  EXPECT_THAT(error, HasSubstr("there is no LMS policy 'lru'; use one of: planned, none, tflms1"));
  for (const PolicyRow& row : policies()) {
    EXPECT_THAT(error, HasSubstr(std::string(row.name)));
  }
}

TEST(NoPolicy, ReturnsTheStepUnchanged) {
  tests::Problem problem;
  problem.schedule.steps.resize(3);
  EXPECT_EQ(find_policy("none").plan(problem.request()).schedule.steps.size(), 3U);
}

}  // namespace
}  // namespace cnn::lms
