#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

// Suites that run on any machine: every flag is known, has a value that it takes, and acts.
class SuiteLines : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, SuiteLines, testing::Values("quick", "lms", "exchange"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(SuiteLines, AreFlagsThatAct) {
  std::ifstream file(std::string(CNN_SOURCE_DIR "/scripts/suites/") + GetParam());
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with('#') || colon == std::string::npos) {
      continue;
    }
    ++lines;
    std::istringstream text(line.substr(colon + 1));
    const std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
    try {
      EXPECT_THAT(parse_flags(words, {}).notices, testing::IsEmpty()) << line;
    } catch (const Error& error) {
      ADD_FAILURE() << line << '\n' << error.what();
    }
  }
  EXPECT_GE(lines, 4);
}

}  // namespace
}  // namespace cnn::bench
