#include "bench/flags/older_flags.h"

#include <algorithm>
#include <cctype>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/flags/flag_table.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> flags_of_older_releases{"auto_mixed_precision",
                                                       "checkpoint_directory",
                                                       "checkpoint_every_n_epochs",
                                                       "checkpoint_interval",
                                                       "cpu",
                                                       "datasets_prefetch_threadpool_size",
                                                       "gpu_pending_cap",
                                                       "input_data_format",
                                                       "kungfu_strategy",
                                                       "num_preprocess_threads",
                                                       "parameter_server",
                                                       "weak_scaling"};

// Returns the names of flags that a text mentions.
std::vector<std::string> flags_mentioned(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find("--"); at != std::string_view::npos; at = text.find("--", at)) {
    at += 2;
    const auto* const begin = text.begin() + at;
    names.emplace_back(begin, std::find_if(begin, text.end(), [](char c) {
                         return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_';
                       }));
  }
  return names;
}

TEST(OlderFlags, HaveAdviceThatNamesFlagsOfToday) {
  for (const std::string& name : flags_of_older_releases) {
    const std::string_view advice = successor_of(name);
    EXPECT_FALSE(advice.empty()) << name;
    for (const std::string& flag : flags_mentioned(advice)) {
      EXPECT_NE(find_flag(flag), nullptr) << advice;
    }
  }
}

TEST(OlderFlags, AreNoRowsOfTheTable) {
  for (const std::string& name : flags_of_older_releases) {
    EXPECT_EQ(find_flag(name), nullptr) << name;
  }
}

TEST(OlderFlags, AreNoFlagsOfTodayAndNoOtherNames) {
  for (const char* name : {"", "device", "learning_rate", "CPU", "cpu ", "kungfu"}) {
    EXPECT_THAT(successor_of(name), IsEmpty()) << name;
  }
}

TEST(OlderValues, HaveAdviceForTheFlagThatTookThem) {
  EXPECT_THAT(successor_of_value("data_name", "flowers"), HasSubstr("--data_name=imagenet"));
  EXPECT_THAT(successor_of_value("data_name", "imagenette"), HasSubstr("--data_name=imagenet"));
  EXPECT_THAT(successor_of_value("data_name", "synthetic"), HasSubstr("without --data_dir"));
  EXPECT_THAT(successor_of_value("device", "numa"), HasSubstr("--num_gpus=N"));
  EXPECT_THAT(successor_of_value("variable_update", "kungfu"), HasSubstr("mpirun -np N"));
  EXPECT_THAT(successor_of_value("variable_update", "perseus"), HasSubstr("mpirun -np N"));
  EXPECT_THAT(successor_of_value("device", "flowers"), IsEmpty());
  EXPECT_THAT(successor_of_value("model", "kungfu"), IsEmpty());
  EXPECT_THAT(successor_of_value("device", "cpu"), IsEmpty());
}

TEST(OlderValues, AreRefusedWithTheirAdvice) {
  EXPECT_THAT(tests::error_of([] { parse_value(*find_flag("device"), "numa"); }),
              testing::AllOf(HasSubstr("--device=numa: "),
                             HasSubstr(std::string(successor_of_value("device", "numa")))));
}

}  // namespace
}  // namespace cnn::bench
