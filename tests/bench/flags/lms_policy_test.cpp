#include "bench/flags/lms_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

std::string policy_by(std::vector<std::string> words) {
  words.insert(words.begin(), "--lms");
  return policy_of(parse_flags(words, {}).config.lms);
}

TEST(LmsPolicy, IsOursUnlessAFlagSelectsAnother) {
  EXPECT_EQ(policy_of(LmsFlags{}), "planned");
  EXPECT_EQ(policy_by({"--lms_n_tensors=-1"}), "planned") << "this flag belongs to all policies";
}

TEST(LmsPolicy, IsThatOfAFlagOfItsOwnWithItsDefaultToo) {
  for (const std::string_view flag : tflms1_flags) {
    const std::string name(flag);
    EXPECT_EQ(policy_by({"--" + name + "=" + to_text(default_value(*find_flag(name)))}), "tflms1")
        << name;
  }
  for (const std::string_view flag : tflms2_flags) {
    const std::string name(flag);
    EXPECT_EQ(policy_by({"--" + name + "=" + to_text(default_value(*find_flag(name)))}), "tflms2")
        << name;
  }
}

TEST(LmsPolicy, IsTheNamedOneWhateverElseIsGiven) {
  EXPECT_EQ(policy_by({"--lms_lb=1", "--lms_policy=caffe"}), "caffe");
  EXPECT_EQ(policy_by({"--lms_swapin_ahead=2", "--lms_policy=planned"}), "planned");
}

TEST(LmsPolicy, IsNotGuessedFromFlagsOfTwo) {
  EXPECT_THAT(tests::error_of([] {
                policy_by({"--lms_lb=1", "--lms_swapout_threshold=1"});
              }),
              testing::HasSubstr("flags of two LMS policies are set"));
}

}  // namespace
}  // namespace cnn::bench
