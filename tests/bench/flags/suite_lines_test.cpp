#include <cstdio>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <string>

#include "bench/flags/flag_table.h"
#include "bench/flags/flags.h"
#include "runtime/error.h"
#include "tests/support/files.h"
#include "tests/support/suites.h"

namespace cnn::bench {
namespace {

// These suites run on any machine, so every flag must be known, have a valid value and take effect.
class SuiteLines : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, SuiteLines, testing::Values("quick", "lms", "exchange"),
                         [](const auto& info) { return std::string(info.param); });

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

// The script splits values at commas into configurations, except for flags whose values may contain
// commas.
TEST(SuiteScript, KeepsTheCommasOfFlagsThatTakeListsOrFreeText) {
  std::ifstream file(CNN_SOURCE_DIR "/scripts/suite.sh");
  std::stringstream text;
  text << file.rdbuf();
  const std::string script = text.str();
  const std::size_t begin = script.find("keeps_commas=(");
  ASSERT_NE(begin, std::string::npos);
  std::istringstream words(script.substr(begin + 14, script.find(')', begin) - begin - 14));
  std::set<std::string> kept;
  for (std::string word; words >> word;) {
    kept.insert(word);
  }
  const std::set<std::string> swept{"model",           "data_name",       "simulate",
                                    "all_reduce_spec", "comm_algo",       "lms_slices",
                                    "lms_row_slices",  "lms_dense_slices"};
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      const std::string name(flag.name);
      const std::string_view type = type_name(meant_by(flag));
      const bool has_commas = (type == "list" || type == "string") && !swept.contains(name);
      EXPECT_EQ(kept.contains(name), has_commas) << name;
    }
  }
}

// The script makes these lines from lists.
TEST(SuiteScript, MakesConfigurationsThatActOfTheSweepOverBatches) {
  const std::string command = CNN_SOURCE_DIR "/scripts/suite.sh batches --list";
  std::FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string listed;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    listed += static_cast<char>(c);
  }
  ASSERT_EQ(pclose(pipe), 0);
  const tests::TemporaryFolder folder;
  const auto lines = tests::suite_lines(folder.write("listed", listed).string());
  EXPECT_EQ(lines.size(), 7U);
  for (const tests::SuiteLine& line : lines) {
    EXPECT_THAT(parse_flags(line.flags, {}).notices, testing::IsEmpty()) << line.name;
  }
}

}  // namespace
}  // namespace cnn::bench
