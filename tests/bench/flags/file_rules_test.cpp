#include "bench/flags/file_rules.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "bench/flags/settings.h"
#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;
using Flags = std::vector<std::pair<std::string, std::string>>;

// Returns what is wrong with the files of these flags.
std::string refusal(const Flags& flags) {
  std::vector<Setting> settings = default_settings();
  for (const auto& [name, value] : flags) {
    find_setting(settings, name).value = parse_value(*find_flag(name), value);
  }
  try {
    check_files(config_of(settings));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(FileRules, RefuseToWriteAFileThatAnotherFlagNames) {
  const std::vector<std::pair<Flags, std::string>> cases{
      {{{"result_json", "x"}, {"trace_file", "x"}}, "--result_json and --trace_file"},
      {{{"steps_csv", "a/../x"}, {"hash_file", "./x"}}, "--steps_csv and --hash_file"},
      {{{"lms_plan_file", "p"}, {"result_json", "p"}}, "--lms_plan_file and --result_json"},
      {{{"data_dir", "d.safetensors"}, {"data_name", "tensors"}, {"history", "d.safetensors"}},
       "--data_dir and --history"},
      {{{"simulate", "m.json"}, {"html_report", "m.json"}}, "--simulate and --html_report"}};
  for (const auto& [flags, both] : cases) {
    EXPECT_THAT(refusal(flags), HasSubstr(both + " name the same file")) << both;
  }
}

TEST(FileRules, FollowLinks) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder / "one") << "text";
  std::filesystem::create_symlink(folder / "one", folder / "two");
  EXPECT_THAT(refusal({{"result_json", folder / "one"}, {"graph_file", folder / "two"}}),
              HasSubstr("--result_json and --graph_file name the same file"));
}

TEST(FileRules, AllowFilesThatNothingDestroys) {
  const std::vector<Flags> allowed{{{"result_json", "/dev/stdout"}, {"steps_csv", "/dev/stdout"}},
                                   {{"result_json", "x"}, {"steps_csv", "y"}},
                                   {{"lms_plan_file", "p"}, {"lms_plan_out", "p"}},
                                   {{"simulate", "h200"}, {"result_json", "h200"}}};
  for (const Flags& flags : allowed) {
    EXPECT_EQ(refusal(flags), "no error") << flags[0].second;
  }
}

}  // namespace
}  // namespace cnn::bench
