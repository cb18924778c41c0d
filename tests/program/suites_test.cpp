#include "tests/support/suites.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

// The simulated machine for each name prefix of the published configurations.
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

// The configurations want a GPU, so the test plans each for the GPU of its publication.
TEST(Suites, PublishedConfigurationsFitTheirMachines) {
  const std::vector<SuiteLine> lines = suite_lines(CNN_SOURCE_DIR "/scripts/suites/published");
  EXPECT_GE(lines.size(), 10U);
  for (const SuiteLine& line : lines) {
    const std::string machine = machine_of(line.name);
    ASSERT_NE(machine, "") << line.name;
    std::vector<std::string> flags{machine};
    flags.insert(flags.end(), line.flags.begin(), line.flags.end());
    const Finished run = run_program(flags);
    EXPECT_EQ(run.status, 0) << line.name << '\n' << run.err;
    EXPECT_NE(run.err.find(" images/sec at "), std::string::npos) << line.name << '\n' << run.err;
  }
}

}  // namespace
}  // namespace cnn::tests
