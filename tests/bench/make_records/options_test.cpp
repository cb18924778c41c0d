#include "bench/make_records/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace cnn::records {
namespace {

using testing::HasSubstr;
using tests::error_of;

TEST(MakeRecordsOptions, AreRead) {
  const Options options =
      parse_options(std::vector<std::string>{"in", "--train_shards=7", "--threads=2", "out",
                                             "--class_list=c", "--seed=5", "--skip_broken"});
  EXPECT_EQ(options.images, "in");
  EXPECT_EQ(options.output, "out");
  EXPECT_EQ(options.train_shards, 7);
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.class_list, "c");
  EXPECT_EQ(options.seed, 5U);
  EXPECT_TRUE(options.skip_broken);
}

TEST(MakeRecordsOptions, AreRefusedWithTheWordThatIsWrong) {
  const auto refusal = [](std::vector<std::string> words) {
    return error_of([&] { parse_options(words); });
  };
  EXPECT_THAT(refusal({"in"}), HasSubstr("which folders?"));
  EXPECT_THAT(refusal({"in", "out", "--shards=3"}), HasSubstr("no option --shards=3"));
  EXPECT_THAT(refusal({"in", "out", "--threads=0"}), HasSubstr("--threads=0: wants a number"));
  EXPECT_THAT(refusal({"in", "out", "--threads=2x"}), HasSubstr("--threads=2x"));
  EXPECT_THAT(refusal({"in", "out", "--threads"}), HasSubstr("wants a value"));
}

TEST(MakeRecordsOptions, HaveDefaultsThatTheHelpNames) {
  const Options options = parse_options(std::vector<std::string>{"in", "out"});
  EXPECT_EQ(options.train_shards, 0) << "one for 1024 images";
  EXPECT_EQ(options.threads, 0) << "as many as there are processors";
  EXPECT_EQ(options.seed, 1234U);
  EXPECT_THAT(std::string(help_text()), HasSubstr("(1234)"));
  EXPECT_FALSE(options.skip_broken);
  EXPECT_FALSE(options.help);
}

TEST(MakeRecordsOptions, AskForHelpWithoutFolders) {
  for (const std::string word : {"--help", "-h", "-help"}) {
    EXPECT_TRUE(parse_options(std::vector<std::string>{word}).help) << word;
  }
}

TEST(MakeRecordsOptions, TakeTheLargestSeedAndNoLargerOne) {
  const auto with_seed = [](const std::string& seed) {
    return parse_options(std::vector<std::string>{"in", "out", "--seed=" + seed});
  };
  EXPECT_EQ(with_seed("18446744073709551615").seed, UINT64_MAX);
  EXPECT_THAT(error_of([&] { with_seed("18446744073709551616"); }), HasSubstr("wants a number"));
  EXPECT_THAT(error_of([&] { with_seed("-1"); }), HasSubstr("wants a number"));
}

}  // namespace
}  // namespace cnn::records
