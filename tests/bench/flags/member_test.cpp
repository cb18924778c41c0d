#include "bench/flags/member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/flags/flag_table.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using MemberWords = std::vector<std::string>;

// Stores a value through a flag's row and returns the value loaded from there.
Plain stored_and_loaded(const char* flag, const Plain& value) {
  const Member& member = *find_flag(flag)->member;
  Config config;
  member.store(config, value);
  return member.load(config);
}

TEST(Member, GoesWhereItsPathSays) {
  constexpr Member batch = at<&Config::size, &SizeOptions::batch>;
  Config config;
  batch.store(config, std::int64_t{12});
  EXPECT_EQ(config.size.batch, 12);
  EXPECT_EQ(config.size.batch_group, Config{}.size.batch_group);
  EXPECT_EQ(batch.load(config), Plain(std::int64_t{12}));
  EXPECT_EQ(batch.type, Type::integer);
  EXPECT_THAT(batch.words(), ElementsAre());
}

TEST(Member, HasTheTypeOfWhatItHoldsAlsoWhereThatIsOptional) {
  EXPECT_EQ((at<&Config::size, &SizeOptions::min_time>.type), Type::real);
  EXPECT_EQ((at<&Config::size, &SizeOptions::warm_up_batches>.type), Type::integer);
  EXPECT_EQ((at<&Config::report, &ReportOptions::check_finite_step>.type), Type::long_integer);
  EXPECT_EQ((at<&Config::report, &ReportOptions::print_plan>.type), Type::boolean);
  EXPECT_EQ((at<&Config::report, &ReportOptions::result_json>.type), Type::text);
  EXPECT_EQ((at<&Config::eval, &EvalOptions::at_epochs>.type), Type::reals);
  EXPECT_EQ((at<&Config::eval, &EvalOptions::at_steps>.type), Type::integers);
}

TEST(Member, TellsUnsetFromZero) {
  constexpr Member seconds = at<&Config::size, &SizeOptions::min_time>;
  Config config;
  EXPECT_EQ(seconds.load(config), Plain());
  seconds.store(config, 0.0);
  EXPECT_EQ(seconds.load(config), Plain(0.0));
  seconds.store(config, Plain());
  EXPECT_FALSE(config.size.min_time.has_value());
}

TEST(Member, KeepsEveryBitOfItsNumbers) {
  EXPECT_EQ(stored_and_loaded("eval_during_training_at_specified_steps",
                              MemberWords{"9007199254740993", "0"}),
            Plain(MemberWords{"9007199254740993", "0"}));
  EXPECT_EQ(
      stored_and_loaded("eval_during_training_at_specified_epochs", MemberWords{"0.1", "3.0"}),
      Plain(MemberWords{"0.1", "3.0"}));
  EXPECT_EQ(stored_and_loaded("eval_during_training_at_specified_steps", MemberWords{}),
            Plain(MemberWords{}));
}

TEST(Member, TakesTheWordsOfItsEnum) {
  for (const char* flag : {"optimizer", "precision", "variable_update", "comm_wire", "device"}) {
    const MemberWords words = find_flag(flag)->member->words();
    ASSERT_GT(words.size(), 1U) << flag;
    for (const std::string& word : choices_of(*find_flag(flag))) {
      const Plain loaded = stored_and_loaded(flag, word);
      EXPECT_EQ(stored_and_loaded(flag, loaded), loaded) << flag << " " << word;
    }
  }
  EXPECT_EQ(stored_and_loaded("optimizer", std::string("adam")), Plain(std::string("adam")));
  EXPECT_EQ(stored_and_loaded("comm_wire", std::string("bf16")), Plain(std::string("bf16")));
  EXPECT_EQ(stored_and_loaded("comm_wire", std::string("auto")), Plain(std::string("auto")))
      << "auto is stored as unset";
}

TEST(Member, LimitedTakesTheseWordsOnly) {
  constexpr Member member =
      limited(at<&Config::report, &ReportOptions::horovod_device>, [] { return MemberWords{"a"}; });
  EXPECT_THAT(member.words(), ElementsAre("a"));
  EXPECT_EQ(member.type, Type::text);
}

TEST(Member, KeepsAScheduleOfLearningRates) {
  EXPECT_EQ(
      stored_and_loaded("piecewise_learning_rate_schedule", std::string("0.3;10;0.2;25;1e-05")),
      Plain(std::string("0.3;10;0.2;25;1e-05")));
  EXPECT_EQ(stored_and_loaded("piecewise_learning_rate_schedule", std::string("0.3")),
            Plain(std::string("0.3")));
  EXPECT_EQ(stored_and_loaded("piecewise_learning_rate_schedule", Plain()), Plain());
  EXPECT_THAT(tests::error_of([] {
                stored_and_loaded("piecewise_learning_rate_schedule", std::string("0.3;10"));
              }),
              HasSubstr("piecewise_learning_rate_schedule"));
}

TEST(Member, KnowsTheDataSetsByName) {
  EXPECT_EQ(stored_and_loaded("data_name", std::string("cifar10")), Plain(std::string("cifar10")));
  EXPECT_EQ(stored_and_loaded("data_name", Plain()), Plain());
  EXPECT_THAT(tests::error_of([] { stored_and_loaded("data_name", std::string("cifar01")); }),
              testing::AllOf(HasSubstr("--data_name=cifar01: there is no such data set; use "),
                             HasSubstr("did you mean cifar10?")));
}

}  // namespace
}  // namespace cnn::bench
