#include "bench/compare/output_files.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::compare {
namespace {

using testing::HasSubstr;

// Returns the message that refuses the files of this command line, or "".
std::string refusal_of_files(const std::vector<std::string>& words) {
  const Arguments arguments = parse_arguments(words);
  return tests::error_of([&] { check_output_files(arguments); });
}

TEST(OutputFiles, DoNotReplaceAnInput) {
  EXPECT_EQ(refusal_of_files({"a.json", "--", "b.json", "--html=./b.json"}),
            "--html=./b.json would replace the file of b.json, which is read; write the report "
            "into another file");
  EXPECT_THAT(refusal_of_files({"a.json", "--", "b.json", "--json=x/../a.json"}),
              HasSubstr("--json=x/../a.json would replace the file of a.json"));
  EXPECT_THAT(refusal_of_files({"a.json", "--", "b.json", "--markdown=b.json"}),
              HasSubstr("--markdown=b.json would replace the file of b.json"));
}

TEST(OutputFiles, DoNotReplaceTheHistory) {
  for (const std::string report : {"--html", "--json"}) {
    EXPECT_THAT(refusal_of_files({"--history=h.jsonl", report + "=./h.jsonl"}),
                HasSubstr(report + "=./h.jsonl would replace the file of --history=h.jsonl"));
  }
}

TEST(OutputFiles, DoNotReplaceEachOther) {
  EXPECT_EQ(refusal_of_files({"a", "--", "b", "--json=o", "--html=./o"}),
            "--json=o and --html=./o name the same file, and the second would replace the first; "
            "give each its own");
  EXPECT_THAT(refusal_of_files({"a", "--", "b", "--json=o", "--markdown=o"}),
              HasSubstr("--json=o and --markdown=o name the same file"));
}

TEST(OutputFiles, AreFoundBehindLinks) {
  const tests::TemporaryFolder folder;
  const std::string input = folder.write("a.json", "{}").string();
  std::filesystem::create_symlink("a.json", folder / "symbolic");
  std::filesystem::create_hard_link(input, folder / "hard");
  for (const std::string name : {"symbolic", "hard"}) {
    EXPECT_THAT(refusal_of_files({input, "--", "b.json", "--html=" + folder / name}),
                HasSubstr("would replace the file of " + input))
        << name;
  }
}

TEST(OutputFiles, MayBeOneDevice) {
  EXPECT_EQ(refusal_of_files({"a", "--", "b", "--json=/dev/stdout", "--html=/dev/stdout"}), "");
  EXPECT_EQ(refusal_of_files({"/dev/null", "--", "b", "--json=/dev/null"}), "");
  EXPECT_EQ(refusal_of_files({"a", "--", "b", "--json=c", "--html=d", "--markdown=e"}), "");
}

}  // namespace
}  // namespace cnn::compare
