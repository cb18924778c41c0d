#include <array>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

// What runs a line of the published configurations here, by how its name begins.
constexpr std::array<std::pair<std::string_view, const char*>, 4> machines{
    {{"p100-", "--simulate=p100-pcie3"},
     {"v100-", "--simulate=v100-nvlink2"},
     {"a100-", "--simulate=a100"},
     {"lms-", "--simulate=p100-pcie3"}}};

std::string machine_of(const std::string& name) {
  for (const auto& [beginning, flag] : machines) {
    if (name.starts_with(beginning)) {
      return flag;
    }
  }
  return {};
}

// They want a GPU, so they are planned for the one that they are of.
TEST(Suites, PublishedConfigurationsFitTheirMachines) {
  std::ifstream file(CNN_SOURCE_DIR "/scripts/suites/published");
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with('#') || colon == std::string::npos) {
      continue;
    }
    ++lines;
    const std::string machine = machine_of(line.substr(0, colon));
    ASSERT_NE(machine, "") << line;
    std::vector<std::string> flags{machine};
    std::istringstream words(line.substr(colon + 1, line.find(" #") - colon - 1));
    for (std::string word; words >> word;) {
      flags.push_back(word);
    }
    const Finished run = run_program(flags);
    EXPECT_EQ(run.status, 0) << line << '\n' << run.err;
    EXPECT_NE(run.err.find(" images/sec at "), std::string::npos) << line << '\n' << run.err;
  }
  EXPECT_GE(lines, 10);
}

}  // namespace
}  // namespace cnn::tests
