#include "runtime/error.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace cnn {
namespace {

TEST(Error, SaysWhatAndKeepsWhere) {
  const Error error("no such model");
  EXPECT_STREQ(error.what(), "no such model");
  EXPECT_NE(std::string_view(error.where().file_name()).find("error_test.cpp"),
            std::string_view::npos);
}

TEST(Error, KnowsTheExitCodeOfItsKind) {
  EXPECT_EQ(Error("wrong flag").exit_code(), 1);
  try {
    throw DoesNotFit("8 GiB are free");
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_STREQ(error.what(), "8 GiB are free");
    EXPECT_NE(std::string_view(error.where().file_name()).find("error_test.cpp"),
              std::string_view::npos);
  }
}

TEST(Check, ThrowsOnlyIfTheConditionFails) {
  EXPECT_NO_THROW(check(true, "fine"));
  try {
    check(false, "the batch is empty");
    FAIL() << "check(false) returned";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the batch is empty");
    EXPECT_EQ(std::string(error.where().function_name()).find("check("), std::string::npos)
        << "where() is the caller";
  }
}

}  // namespace
}  // namespace cnn
