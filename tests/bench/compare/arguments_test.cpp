#include "bench/compare/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"

namespace cnn::compare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Arguments parsed(std::vector<std::string> words) { return parse_arguments(words); }

std::string complaint(std::vector<std::string> words) {
  try {
    parse_arguments(words);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Arguments, MayHaveOptionsAnywhere) {
  const Arguments found = parsed({"a.json", "--confidence=95", "b.json", "--", "--html", "p.html",
                                  "c.json", "--minimum_effect=1", "--json", "--markdown=s.md"});
  EXPECT_THAT(found.base, ElementsAre("a.json", "b.json"));
  EXPECT_THAT(found.candidate, ElementsAre("c.json"));
  EXPECT_DOUBLE_EQ(found.settings.confidence, 0.95);
  EXPECT_DOUBLE_EQ(found.settings.minimum_effect, 0.01);
  EXPECT_EQ(found.html, "p.html");
  EXPECT_EQ(found.json, "");
  EXPECT_EQ(found.markdown, "s.md");
}

TEST(Arguments, TakeTwoFilesForBitsWithOrWithoutADivision) {
  for (const Arguments& found :
       {parsed({"--bits", "a", "b"}), parsed({"a", "--", "b", "--bits"})}) {
    EXPECT_TRUE(found.bits);
    EXPECT_THAT(found.base, ElementsAre("a"));
    EXPECT_THAT(found.candidate, ElementsAre("b"));
  }
  EXPECT_THAT(complaint({"--bits", "a"}),
              HasSubstr("--bits compares two files of --hash_file, not 1"));
  EXPECT_THAT(complaint({"--bits", "a", "b", "c"}), HasSubstr("not 3"));
  EXPECT_THAT(complaint({"--bits", "a", "b", "--html=p.html"}), HasSubstr("are for result files"));
}

TEST(Arguments, AreNamedIfTheyMakeNoSense) {
  EXPECT_THAT(complaint({"a.json", "b.json"}), HasSubstr("which are the new runs?"));
  EXPECT_THAT(complaint({"a.json", "--", "b.json", "--", "c.json"}), HasSubstr("two sides"));
  EXPECT_THAT(complaint({"--confidnce=95"}), HasSubstr("no option --confidnce=95"));
  EXPECT_THAT(complaint({"--confidence=often"}), HasSubstr("wants a percentage from 50"));
  EXPECT_THAT(complaint({"--confidence=100"}), HasSubstr("wants a percentage"));
  EXPECT_THAT(complaint({"--minimum_effect=1%"}), HasSubstr("wants a percentage"));
  EXPECT_THAT(complaint({"a", "--", "b", "--html"}), HasSubstr("--html wants a value"));
  EXPECT_THAT(complaint({"--across_machines=yes"}), HasSubstr("takes no value"));
}

TEST(Arguments, AskForHelpWithoutFiles) { EXPECT_TRUE(parsed({"--help"}).help); }

TEST(Arguments, AskForTheVersionWithoutFiles) {
  EXPECT_TRUE(parsed({"--version"}).version);
  EXPECT_TRUE(parsed({"--bits", "--version"}).version);
  EXPECT_FALSE(parsed({"a.json", "--", "b.json"}).version);
}

TEST(Arguments, StandAloneForAHistory) {
  const Arguments arguments = parsed({"--history=h", "--html=p"});
  EXPECT_EQ(arguments.history, "h");
  EXPECT_EQ(arguments.html, "p");
  EXPECT_THAT(complaint({"--history=h", "a.json"}), HasSubstr("--history=FILE stands alone"));
}

TEST(Arguments, TakeFilesOfOneSideForAnExport) {
  const Arguments arguments =
      parsed({"a.json", "--export=github-action-benchmark", "b.json", "--measure=step_seconds"});
  EXPECT_EQ(arguments.export_as, ExportFormat::github_action_benchmark);
  EXPECT_EQ(arguments.measure, Measure::step_seconds);
  EXPECT_THAT(arguments.base, ElementsAre("a.json", "b.json"));
  EXPECT_THAT(complaint({"--export=csv"}), HasSubstr("--export takes result files of one side"));
}

TEST(Arguments, RefuseTwoReportsOnStdout) {
  EXPECT_EQ(complaint({"a", "--", "b", "--json", "--markdown"}),
            "--json and --markdown would both print to stdout; give one a file, as "
            "--markdown=FILE");
  EXPECT_EQ(complaint({"a", "--", "b", "--json", "--markdown=m"}), "accepted");
}

TEST(Arguments, AreRefusedInAModeInWhichTheyDoNotAct) {
  const std::string measure =
      "--measure acts with --export=github-action-benchmark only; leave it out";
  EXPECT_EQ(complaint({"a", "--", "b", "--measure=step_seconds"}), measure);
  EXPECT_EQ(complaint({"a", "--export=csv", "--measure=step_seconds"}), measure);
  EXPECT_EQ(complaint({"--bits", "a", "b", "--confidence=95"}),
            "--confidence does not act with --bits; leave it out");
  EXPECT_EQ(complaint({"--bits", "a", "b", "--export=csv"}),
            "--export does not act with --bits; leave it out");
  EXPECT_EQ(complaint({"--history=h", "--resolution=1"}),
            "--resolution does not act with --history; leave it out");
  EXPECT_EQ(complaint({"a", "--export=csv", "--across_machines"}),
            "--across_machines does not act with --export; leave it out");
  EXPECT_EQ(
      complaint({"--history=h", "--confidence=95", "--minimum_effect=1", "--across_machines"}),
      "accepted");
}

TEST(Arguments, NameTheOptionOfAnEmptyPath) {
  for (const std::string name : {"html", "json", "markdown", "history"}) {
    EXPECT_EQ(complaint({"a", "--", "b", "--" + name + "="}),
              "--" + name + "= names no file; give a path, as --" + name + "=FILE");
  }
  EXPECT_THAT(complaint({"a", "--", "b", "--html", ""}), HasSubstr("--html= names no file"));
  EXPECT_THAT(complaint({"a", "", "--", "b"}), HasSubstr("an empty word is no file"));
}

}  // namespace
}  // namespace cnn::compare
