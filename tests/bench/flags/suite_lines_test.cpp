#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/flags/flags.h"
#include "runtime/error.h"
#include "tests/support/suites.h"

namespace cnn::bench {
namespace {

// Suites that run on any machine: every flag is known, has a value that it takes, and acts.
class SuiteLines : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, SuiteLines, testing::Values("quick", "lms", "exchange"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(SuiteLines, AreFlagsThatAct) {
  const auto lines =
      tests::suite_lines(std::string(CNN_SOURCE_DIR "/scripts/suites/") + GetParam());
  EXPECT_GE(lines.size(), 4U);
  for (const tests::SuiteLine& line : lines) {
    try {
      EXPECT_THAT(parse_flags(line.flags, {}).notices, testing::IsEmpty()) << line.name;
    } catch (const Error& error) {
      ADD_FAILURE() << line.name << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace cnn::bench
