#include "bench/flags/flag_syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::Pair;

Arguments read(std::vector<std::string> words) { return read_arguments(words); }

std::string syntax_refusal(std::vector<std::string> words) {
  try {
    read_arguments(expand_flag_files(words));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(FlagSyntax, ReadsAllFormsOfAFlag) {
  EXPECT_THAT(
      read({"--batch_size=3", "--num_batches", "4", "-model=vgg11", "-optimizer", "adam"}).flags,
      ElementsAre(Pair("batch_size", "3"), Pair("num_batches", "4"), Pair("model", "vgg11"),
                  Pair("optimizer", "adam")));
  EXPECT_THAT(read({"--eval", "--nodropout", "--forward_only=F", "-noeval"}).flags,
              ElementsAre(Pair("eval", "true"), Pair("dropout", "false"), Pair("forward_only", "F"),
                          Pair("eval", "false")));
}

TEST(FlagSyntax, KeepsEqualsSignsAndDashesInValues) {
  EXPECT_THAT(
      read({"--benchmark_test_id=a=b", "--ddl_options", "-mode b:4x1", "--train_dir="}).flags,
      ElementsAre(Pair("benchmark_test_id", "a=b"), Pair("ddl_options", "-mode b:4x1"),
                  Pair("train_dir", "")));
}

TEST(FlagSyntax, EndsFlagsAtTheFirstOtherWord) {
  EXPECT_THAT(read({"--eval", "false", "--batch_size=3"}).positional,
              ElementsAre("false", "--batch_size=3"));
  const Arguments after = read({"--eval", "--", "--batch_size=3"});
  EXPECT_THAT(after.flags, ElementsAre(Pair("eval", "true")));
  EXPECT_THAT(after.positional, ElementsAre("--batch_size=3"));
  EXPECT_THAT(read({"-"}).positional, ElementsAre("-"));
}

TEST(FlagSyntax, RefusesWhatCannotBeAFlag) {
  EXPECT_EQ(syntax_refusal({"--batch_size"}),
            "FATAL Flags parsing error: Missing value for flag --batch_size");
  EXPECT_EQ(syntax_refusal({"--nodropout=1"}),
            "FATAL Flags parsing error: --nodropout does not take an argument");
  EXPECT_EQ(syntax_refusal({"--nobatch_size"}),
            "FATAL Flags parsing error: Unknown command line flag 'nobatch_size'. Did you mean: "
            "--batch_size ?");
  EXPECT_EQ(syntax_refusal({"--xyzzy=1"}),
            "FATAL Flags parsing error: Unknown command line flag 'xyzzy'.");
}

TEST(FlagSyntax, SuggestsTheFlagThatWasMeant) {
  EXPECT_EQ(syntax_refusal({"--bathc_size=3"}),
            "FATAL Flags parsing error: Unknown command line flag 'bathc_size'. Did you mean: "
            "--batch_size ?");
  EXPECT_THAT(similar_flags("learning_rte"), ElementsAre("learning_rate"));
  EXPECT_THAT(similar_flags("num_batch"), ElementsAre("num_batches"));
  EXPECT_THAT(similar_flags("forward"), ElementsAre("forward_only"));
  EXPECT_THAT(similar_flags("nodropuot"), ElementsAre("nodropout"));
  EXPECT_THAT(similar_flags("lms_batch_slices"),
              ElementsAre("lms_slices", "lms_dense_slices", "lms_row_slices"));
  EXPECT_THAT(similar_flags("my_batch_size"), ElementsAre("batch_size"));
  EXPECT_THAT(similar_flags("num_gpus_here"), ElementsAre("num_gpus"));
  EXPECT_TRUE(similar_flags("lms_unheard").empty()) << "one word left is no hint";
  EXPECT_TRUE(similar_flags("qqqqqqqq").empty());
}

TEST(FlagSyntax, IgnoresUnknownFlagsThatUndefokNames) {
  const Arguments some = read({"--undefok=foo,bar", "--foo=1", "--nobar", "--eval"});
  EXPECT_THAT(some.flags, ElementsAre(Pair("undefok", "foo,bar"), Pair("eval", "true")));
  EXPECT_EQ(syntax_refusal({"--undefok=foo", "--fop=1"}),
            "FATAL Flags parsing error: Unknown command line flag 'fop'.");
}

class FlagFiles : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
  }

 private:
  tests::TemporaryFolder folder_;
};

TEST_F(FlagFiles, StandForTheirLinesInPlace) {
  const std::string path =
      file("flags", "# a comment\n--batch_size=2\n\n  // another\n  --eval\t\r\n");
  EXPECT_THAT(expand_flag_files(
                  std::vector<std::string>{"--model=a", "--flagfile=" + path, "--batch_size", "3"}),
              ElementsAre("--model=a", "--batch_size=2", "--eval", "--batch_size", "3"));
}

TEST_F(FlagFiles, MayIncludeOthers) {
  const std::string inner = file("inner", "--batch_size\n4");
  const std::string outer = file("outer", "--eval\n--flagfile=" + inner + "\n--dropout\n");
  EXPECT_THAT(expand_flag_files(std::vector<std::string>{"-flagfile", outer}),
              ElementsAre("--eval", "--batch_size", "4", "--dropout"));
}

TEST_F(FlagFiles, MayNotIncludeThemselves) {
  const std::string path = file("self", "");
  file("self", "--flagfile=" + path + "\n");
  EXPECT_EQ(syntax_refusal({"--flagfile=" + path}),
            "FATAL Flags parsing error: flag files nest more than 16 deep; one of them may "
            "include itself");
}

TEST_F(FlagFiles, MayNotBeFolders) {
  EXPECT_EQ(syntax_refusal({"--flagfile=/"}),
            "FATAL Flags parsing error: --flagfile=/ is a folder; name a file in it");
}

TEST_F(FlagFiles, MustExist) {
  EXPECT_EQ(syntax_refusal({"--flagfile=/nowhere/at/all"}),
            "FATAL Flags parsing error: cannot read --flagfile=/nowhere/at/all");
  EXPECT_EQ(syntax_refusal({"--flagfile"}),
            "FATAL Flags parsing error: Missing value for flag --flagfile");
}

TEST_F(FlagFiles, AreNotReadAfterTheEndOfFlags) {
  EXPECT_THAT(expand_flag_files(std::vector<std::string>{"--", "--flagfile=x"}),
              ElementsAre("--", "--flagfile=x"));
  EXPECT_THAT(expand_flag_files(std::vector<std::string>{"--ddl_options", "--flagfile=x"}),
              ElementsAre("--ddl_options", "--flagfile=x"));
}

}  // namespace
}  // namespace cnn::bench
