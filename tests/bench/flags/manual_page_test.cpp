#include "bench/flags/manual_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/flags/flag_table.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;

std::vector<std::string> lines_of_manual() {
  std::vector<std::string> lines;
  std::istringstream stream(manual_page());
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

TEST(ManualPage, HasOneEntryForEachFlag) {
  std::size_t entries = 0;
  for (const std::string& line : lines_of_manual()) {
    entries += line.starts_with("\\fB\\-\\-") ? 1 : 0;
  }
  std::size_t flags = 0;
  for (const FlagGroup& group : flag_groups()) {
    flags += group.flags.size();
  }
  EXPECT_EQ(entries, flags);
}

TEST(ManualPage, HasNoLineThatRoffWouldMisread) {
  const std::set<std::string> requests{".TH", ".SH", ".SS", ".TP", ".ad"};
  for (const std::string& line : lines_of_manual()) {
    if (line.starts_with('.') || line.starts_with('\'')) {
      EXPECT_TRUE(requests.contains(line.substr(0, 3))) << line;
    }
    EXPECT_FALSE(line.empty()) << "an empty line ends a paragraph";
  }
}

TEST(ManualPage, KeepsHyphensAsTheyAreTyped) {
  const std::string page = manual_page();
  EXPECT_THAT(page, HasSubstr("\n\\fB\\-\\-batch_size\\fR (int; default 0)\n"));
  EXPECT_THAT(page,
              HasSubstr("\n\\fBcnn_benchmarks \\-\\-model=resnet50 \\-\\-batch_size=32\\fR\n"));
}

TEST(ManualPage, HasTheSectionsThatAReaderExpects) {
  const std::string page = manual_page();
  EXPECT_THAT(page, testing::StartsWith(".TH CNN_BENCHMARKS 1\n.ad l\n.SH NAME\n"));
  std::size_t place = 0;
  for (const char* title : {"SYNOPSIS", "DESCRIPTION", "EXAMPLES", "FLAGS", "FLAGS WITHOUT EFFECT",
                            "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"}) {
    const std::size_t found = page.find(std::string("\n.SH ") + title + "\n");
    ASSERT_NE(found, std::string::npos) << title;
    EXPECT_GT(found, place) << title;
    place = found;
  }
}

TEST(ManualPage, SetsFlagsWithoutEffectApart) {
  const std::string page = manual_page();
  const std::size_t apart = page.find("\n.SH FLAGS WITHOUT EFFECT\n");
  EXPECT_LT(page.find("\n\\fB\\-\\-model\\fR "), apart);
  const std::size_t xla = page.find("\n\\fB\\-\\-xla\\fR ");
  ASSERT_NE(xla, std::string::npos);
  EXPECT_GT(xla, apart);
}

}  // namespace
}  // namespace cnn::bench
