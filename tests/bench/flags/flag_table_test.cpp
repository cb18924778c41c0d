#include "bench/flags/flag_table.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "bench/flags/number_text.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;

std::vector<Flag> all_flags() {
  std::vector<Flag> all;
  for (const FlagGroup& group : flag_groups()) {
    all.insert(all.end(), group.flags.begin(), group.flags.end());
  }
  return all;
}

std::string support_name(FlagSupport support) {
  const std::map<FlagSupport, std::string> names{{FlagSupport::honoured, "honoured"},
                                                 {FlagSupport::accepted, "accepted"},
                                                 {FlagSupport::rejected, "rejected"}};
  return names.at(support);
}

std::string default_in_table(const Flag& flag) {
  const std::string text = to_text(default_value(flag));
  if (type_name(flag) == "list") {
    return "[" + text + "]";
  }
  return text.empty() ? "''" : text;
}

struct Expected {
  std::string name, type, usual, support;
};

std::vector<Expected> expected_flags() {
  std::ifstream file(CNN_SOURCE_DIR "/tests/bench/flags/flags_expected.tsv");
  std::vector<Expected> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    std::istringstream cells(line);
    Expected row;
    std::getline(cells, row.name, '\t');
    std::getline(cells, row.type, '\t');
    std::getline(cells, row.usual, '\t');
    std::getline(cells, row.support, '\t');
    if (row.type == "float" && row.usual != "None") {
      row.usual = shortest(read_float(row.usual).value());
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(FlagTable, HasEveryFlagOfTheOriginalWithItsTypeAndDefault) {
  const std::vector<Expected> rows = expected_flags();
  for (const Expected& row : rows) {
    const Flag* flag = find_flag(row.name);
    ASSERT_NE(flag, nullptr) << row.name;
    EXPECT_EQ(type_name(*flag), row.type) << row.name;
    EXPECT_EQ(default_in_table(*flag), row.usual) << row.name;
    EXPECT_EQ(support_name(flag->support), row.support) << row.name;
  }
  EXPECT_EQ(all_flags().size(), rows.size());
}

TEST(FlagTable, GivesEachFlagItsOwnNameAndItsOwnMember) {
  std::set<std::string_view> names;
  std::set<const Member*> members{nullptr};
  for (const Flag& flag : all_flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    if (!flag.renamed_to.empty()) {
      EXPECT_NE(find_flag(flag.renamed_to), nullptr) << flag.name;
    } else if (flag.member != nullptr) {
      EXPECT_TRUE(members.insert(flag.member).second) << flag.name;
    }
  }
}

TEST(FlagTable, ExplainsEachFlagAndEachRefusal) {
  for (const Flag& flag : all_flags()) {
    EXPECT_FALSE(flag.help.empty()) << flag.name;
    EXPECT_EQ(flag.note.empty(), flag.support == FlagSupport::honoured) << flag.name;
  }
}

TEST(FlagTable, HasDefaultsThatTheirOwnFlagsAccept) {
  for (const Flag& flag : all_flags()) {
    const Plain usual = default_value(flag);
    if (usual != Plain()) {
      EXPECT_EQ(parse_value(flag, to_text(usual)), usual) << flag.name;
    }
  }
}

TEST(FlagTable, HasMembersThatKeepTheirDefault) {
  for (const Flag& flag : all_flags()) {
    if (flag.member != nullptr) {
      Config config;
      flag.member->store(config, default_value(flag));
      EXPECT_EQ(flag.member->load(config), default_value(flag)) << flag.name;
    }
  }
}

std::string row_refusal(std::string_view name, const std::string& text) {
  try {
    parse_value(*find_flag(name), text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Config with(std::string_view name, const std::string& text) {
  Config config;
  const Flag& flag = *find_flag(name);
  flag.member->store(config, parse_value(flag, text));
  return config;
}

TEST(FlagTable, ReadsSwitchesInAnyCase) {
  for (const char* yes : {"true", "True", "TRUE", "t", "T", "1"}) {
    EXPECT_TRUE(with("eval", yes).mode.eval) << yes;
  }
  for (const char* no : {"false", "False", "f", "F", "0"}) {
    EXPECT_FALSE(with("dropout", no).model.dropout) << no;
  }
  for (const char* wrong : {"yes", "no", "on", "2", "", "tru"}) {
    EXPECT_THAT(row_refusal("eval", wrong), HasSubstr("a switch takes")) << wrong;
  }
}

TEST(FlagTable, ReadsNumbersToTheEndOrRefusesThem) {
  EXPECT_EQ(with("num_batches", "12").size.length.batches, 12);
  EXPECT_EQ(with("batch_size", "-1").size.batch, -1);
  EXPECT_EQ(parse_value(*find_flag("trt_max_workspace_size_bytes"), "9000000000"),
            Plain(std::int64_t{9000000000}));
  EXPECT_EQ(with("weight_decay", "1e-3").optimizer.weight_decay, 0.001);
  EXPECT_EQ(with("init_learning_rate", ".5").rate.init_learning_rate, 0.5);
  for (const char* wrong :
       {"", "x", "12x", "1.5", "0x10", " 3", "2147483648", "-2147483649", "99999999999999999999"}) {
    EXPECT_THAT(row_refusal("num_batches", wrong), HasSubstr("not a whole number")) << wrong;
  }
  for (const char* wrong : {"", "1e", "1,5", "nan", "inf", "1e999", "0.5 "}) {
    EXPECT_THAT(row_refusal("weight_decay", wrong), HasSubstr("not a finite number")) << wrong;
  }
}

TEST(FlagTable, KeepsNumbersInTheirRange) {
  EXPECT_EQ(row_refusal("num_batches", "-1"),
            "FATAL Flags parsing error: flag --num_batches=-1: must be 0 or more");
  EXPECT_EQ(row_refusal("gpu_memory_frac_for_testing", "-1"),
            "FATAL Flags parsing error: flag --gpu_memory_frac_for_testing=-1: must be 0 or more");
  EXPECT_THAT(row_refusal("num_warmup_batches", "-1"), HasSubstr("0 or more"));
  EXPECT_THAT(row_refusal("display_every", "0"), HasSubstr("1 or more"));
  EXPECT_THAT(row_refusal("image_size", "0"), HasSubstr("1 or more"));
  EXPECT_THAT(row_refusal("num_intra_threads", "-1"), HasSubstr("0 or more"));
  EXPECT_THAT(row_refusal("display_perf_ewma", "1.1"), HasSubstr("1 or less"));
  EXPECT_THAT(row_refusal("rmsprop_decay", "2"), HasSubstr("1 or less"));
  EXPECT_EQ(row_refusal("adam_beta2", "1"),
            "FATAL Flags parsing error: flag --adam_beta2=1: must be less than 1");
  EXPECT_THAT(row_refusal("adam_beta1", "-0.1"), HasSubstr("0 or more"));
  EXPECT_THAT(row_refusal("summary_verbosity", "4"), HasSubstr("3 or less"));
  EXPECT_THAT(row_refusal("eval_during_training_every_n_steps", "0"), HasSubstr("1 or more"));
  EXPECT_EQ(row_refusal("display_perf_ewma", "1"), "no error");
}

TEST(FlagTable, TakesWordsOfAListOnlyAndCaseCounts) {
  EXPECT_EQ(with("optimizer", "adam").optimizer.rule, layers::Rule::adam);
  EXPECT_EQ(row_refusal("job_name", ""), "no error");
  EXPECT_EQ(row_refusal("optimizer", "adamw"),
            "FATAL Flags parsing error: flag --optimizer=adamw: value should be one of "
            "<momentum|sgd|rmsprop|adam>; did you mean adam?");
  EXPECT_THAT(row_refusal("optimizer", "SGD"), HasSubstr("sgd ?"));
  EXPECT_THAT(row_refusal("data_format", "nchw"), HasSubstr("NCHW ?"));
  EXPECT_THAT(row_refusal("job_name", "foo"), HasSubstr("<ps|worker|controller|>"));
  EXPECT_EQ(with("model", "any text at all").model.name, "any text at all");
}

TEST(FlagTable, SplitsListsAtCommas) {
  const std::vector<std::int64_t> expected{1, 20, 3};
  EXPECT_EQ(with("eval_during_training_at_specified_steps", "1, 20,3").eval.at_steps, expected);
  EXPECT_TRUE(with("eval_during_training_at_specified_steps", "").eval.at_steps.empty());
}

TEST(FlagTable, TreatsAnEmptyPathAsUnset) {
  EXPECT_FALSE(with("data_dir", "").data.dir.has_value());
  EXPECT_EQ(with("data_dir", "/data").data.dir, "/data");
}

TEST(FlagTable, WritesValuesAsTheCommandLineReadsThem) {
  EXPECT_EQ(to_text(Plain()), "None");
  EXPECT_EQ(to_text(Plain(true)), "True");
  EXPECT_EQ(to_text(Plain(std::int64_t{7})), "7");
  EXPECT_EQ(to_text(Plain(1.0)), "1.0");
  EXPECT_EQ(to_text(Plain(std::vector<std::string>{"a", "b"})), "a,b");
}

}  // namespace
}  // namespace cnn::bench
