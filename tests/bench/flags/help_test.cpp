#include "bench/flags/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "bench/flags/help_parts.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::string help(const std::vector<std::string>& words) {
  return help_text(parse_flags(words, {}).config.help);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// Returns the flags for which a help text has a line.
std::vector<std::string> flags_in(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("  --")) {
      names.push_back(line.substr(4, line.find(' ', 4) - 4));
    }
  }
  return names;
}

TEST(Help, ShowsTheTwentyFiveFlagsThatMatterAndThreeExamples) {
  const std::string text = help({"--help"});
  const std::vector<std::string> names = flags_in(text);
  EXPECT_EQ(names.size(), 25U);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 25U);
  EXPECT_EQ(help_examples().size(), 3U);
  EXPECT_THAT(text, HasSubstr("\nHow much to run:\n  --batch_size (int; default 0)\n      "));
  EXPECT_THAT(text, HasSubstr("--optimizer (momentum|sgd|rmsprop|adam; default sgd)"));
  EXPECT_THAT(text, HasSubstr("All flags: --helpfull."));
  EXPECT_THAT(text, Not(HasSubstr("--xla")));
}

TEST(Help, HasExamplesThatParseWithoutANotice) {
  for (const HelpEntry& example : help_examples()) {
    std::istringstream stream{std::string(example.term)};
    std::vector<std::string> words;
    for (std::string word; stream >> word;) {
      words.push_back(word);
    }
    const auto program = std::ranges::find(words, "cnn_benchmarks");
    ASSERT_NE(program, words.end()) << example.term;
    const RunEnvironment environment{.launched = program != words.begin()};
    EXPECT_THAT(
        parse_flags(std::vector<std::string>(program + 1, words.end()), environment).notices,
        IsEmpty())
        << example.term;
  }
}

TEST(Help, ShowsFlagsWithoutEffectLastInOneBlock) {
  const std::string full = help({"--helpfull"});
  const std::size_t block = full.find("\nFlags of the original without effect here:\n");
  ASSERT_NE(block, std::string::npos);
  const std::vector<std::string> acting = flags_in(full.substr(0, block));
  const std::vector<std::string> rest = flags_in(full.substr(block));
  std::size_t flags = 0;
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      ++flags;
      EXPECT_THAT(acts(flag) ? acting : rest, testing::Contains(std::string(flag.name)));
    }
  }
  EXPECT_EQ(acting.size() + rest.size(), flags);
  EXPECT_THAT(acting, testing::Contains("learning_rate"));
  EXPECT_THAT(rest, testing::Contains("use_data_sets"));  // an older name of a flag without effect
  EXPECT_THAT(rest, testing::Contains("xla"));
}

TEST(Help, ShowsTheFlagsOfAGroup) {
  const std::vector<std::string> lms = flags_in(help({"--help=lms"}));
  for (const char* name : {"lms", "lms_policy", "lms_lb", "device_memory_mb", "output_dir"}) {
    EXPECT_THAT(lms, testing::Contains(name));
  }
  EXPECT_THAT(lms, Not(testing::Contains("model")));
  EXPECT_EQ(lms.back(), "lms_serialization_by_size");  // this flag has no effect
}

TEST(Help, ShowsTheFlagsThatMentionAWord) {
  EXPECT_THAT(flags_in(help({"--help=checkpoint"})), testing::Contains("train_dir"));
  EXPECT_THAT(flags_in(help({"--help=Winograd"})), testing::ElementsAre("winograd_nonfused"));
  EXPECT_THAT(
      ([] { help({"--help=checkpiont"}); }),
      testing::ThrowsMessage<Error>(AllOf(StartsWith("--help=checkpiont: no flag mentions it"),
                                          HasSubstr("did you mean checkpoint?"))));
}

TEST(Help, KeepsHelpASwitchForTheWordsOfSwitches) {
  EXPECT_FALSE(wants_help(parse_flags(std::vector<std::string>{"--help=false"}, {}).config));
  EXPECT_EQ(help({"--help=true"}), help({"--help"}));
}

TEST(Help, IsShorterOrFullerOnDemand) {
  const std::string brief = help({"--helpshort"});
  const std::string usual = help({"--help"});
  const std::string full = help({"--helpfull"});
  EXPECT_EQ(flags_in(brief), flags_in(usual));
  EXPECT_LT(brief.size(), usual.size());
  EXPECT_LT(usual.size(), full.size());
  EXPECT_THAT(full, HasSubstr("--num_gpus (int; default 1)"));
  EXPECT_THAT(full, HasSubstr("--learning_rate (float; default None)"));
}

TEST(Help, FitsAHundredColumns) {
  for (const char* flag : {"--help", "--helpshort", "--helpfull"}) {
    for (const std::string& line : lines_of(help({flag}))) {
      // The list of words that a flag takes cannot be broken.
      if (!line.starts_with("  --variable_update (") && !line.starts_with("  --lms_policy (")) {
        EXPECT_LE(line.size(), 100U) << line;
      }
    }
  }
}

}  // namespace
}  // namespace cnn::bench
