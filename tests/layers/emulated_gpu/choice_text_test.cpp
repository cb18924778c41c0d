#include "layers/cuda/cudnn/choice_text.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <string_view>

namespace cnn::layers::cuda {
namespace {

bool is_choice(std::string_view text) {
  Choice read;
  return read_choice_fields(text, read);
}

TEST(ChoiceText, SeparatesEngineSettingsAndWorkspaceByTabs) {
  EXPECT_EQ(choice_fields({.engine = 62, .knobs = {{2, 4}, {13, 0}}, .workspace = 1024}),
            "62\t2=4,13=0\t1024");
  EXPECT_EQ(choice_fields({.engine = 0}), "0\t-\t0");
}

TEST(ChoiceText, GivesBackEveryNumber) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  for (const Choice& choice : {Choice{}, Choice{.engine = 1, .knobs = {{3, -1}}, .workspace = 7},
                               Choice{.engine = least,
                               .knobs = {{least, 0}, {0, std::numeric_limits<std::int64_t>::max()}},
                               .workspace = std::numeric_limits<std::size_t>::max()}}) {
    Choice read;
    ASSERT_TRUE(read_choice_fields(choice_fields(choice), read));
    EXPECT_EQ(read, choice);
  }
}

TEST(ChoiceText, RefusesFieldsThatAreMissingOrTooMany) {
  for (const char* const text : {"", "62", "62\t-", "62\t-\t", "\t-\t1", "62\t-\t1\t2", "62 - 1"}) {
    EXPECT_FALSE(is_choice(text)) << text;
  }
  EXPECT_TRUE(is_choice("62\t-\t1"));
}

TEST(ChoiceText, RefusesWhatIsNoNumber) {
  for (const char* const text :
       {"a\t-\t1", "6x\t-\t1", " 6\t-\t1", "6\t-\t-1", "6\t-\t1 ", "6\t-\t99999999999999999999"}) {
    EXPECT_FALSE(is_choice(text)) << text;
  }
}

TEST(ChoiceText, RefusesSettingsThatAreNoPairs) {
  for (const char* const text : {"6\t\t1", "6\t2\t1", "6\t2=\t1", "6\t=4\t1", "6\t2=4=5\t1",
                                 "6\t2=4;3=1\t1", "6\t2=4,,3=1\t1", "6\t-,2=4\t1"}) {
    EXPECT_FALSE(is_choice(text)) << text;
  }
}

}  // namespace
}  // namespace cnn::layers::cuda
