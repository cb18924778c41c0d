#include "bench/flags/help_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <stdexcept>
#include <string>

#include "bench/flags/flag_table.h"

namespace cnn::bench {
namespace {

const Flag& row_of(const char* name) {
  const Flag* const flag = find_flag(name);
  if (flag == nullptr) {
    throw std::runtime_error(name);
  }
  return *flag;
}

TEST(HelpParts, TellWhichFlagsAct) {
  EXPECT_TRUE(acts(row_of("batch_size")));
  EXPECT_FALSE(acts(row_of("xla")));
  EXPECT_FALSE(acts(row_of("job_name")));
  EXPECT_TRUE(acts(row_of("learning_rate"))) << "an older name of a flag with effect";
  EXPECT_FALSE(acts(row_of("use_data_sets"))) << "an older name of a flag without effect";
}

TEST(HelpParts, WriteTheValuesThatAFlagTakes) {
  EXPECT_EQ(value_text(row_of("batch_size")), "int");
  EXPECT_EQ(value_text(row_of("eval")), "bool");
  EXPECT_EQ(value_text(row_of("optimizer")), "momentum|sgd|rmsprop|adam");
  EXPECT_EQ(value_text(row_of("learning_rate")), value_text(row_of("init_learning_rate")));
}

TEST(HelpParts, WriteDefaultsAsTheCommandLineDoes) {
  EXPECT_EQ(default_text(row_of("batch_size")), "0");
  EXPECT_EQ(default_text(row_of("eval")), "False");
  EXPECT_EQ(default_text(row_of("learning_rate")), "None");
  EXPECT_EQ(default_text(row_of("trace_file")), "''");
}

// Only the description of a flag without effect may say that it has no effect or is missing.
TEST(HelpParts, SayInTheDescriptionWhyAFlagDoesNotAct) {
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      const std::string words = description_of(flag);
      EXPECT_TRUE(words.starts_with(flag.help)) << flag.name;
      const bool excused = words.find(" [no effect: ") != std::string::npos ||
                           words.find(" [not available: ") != std::string::npos;
      EXPECT_EQ(excused, !acts(flag)) << flag.name << ": " << words;
    }
  }
}

TEST(HelpParts, NameEssentialFlagsThatAct) {
  for (const HelpEntry& heading : essential_flags()) {
    std::istringstream names{std::string(heading.text)};
    for (std::string name; names >> name;) {
      const Flag* const flag = find_flag(name);
      ASSERT_NE(flag, nullptr) << name;
      EXPECT_TRUE(acts(*flag) && flag->renamed_to.empty()) << name;
    }
  }
}

TEST(HelpParts, TellEachExitStatusOnce) {
  std::vector<std::string_view> terms;
  for (const HelpEntry& status : exit_statuses()) {
    terms.push_back(status.term);
  }
  EXPECT_THAT(terms, testing::ElementsAre("0", "1", "3", "4", "75", "128+N"));
}

}  // namespace
}  // namespace cnn::bench
