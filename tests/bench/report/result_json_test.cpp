#include "bench/report/result_json.h"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace cnn::bench {
namespace {

using testing::ElementsAre;

std::vector<std::string> keys_of(const Json& json) {
  std::vector<std::string> names;
  for (const auto& item : json.items()) {
    names.push_back(item.key());
  }
  return names;
}

RunIdentity example_identity() {
  return {.version = "0.1",
          .command = {"cnn_benchmarks", "--model=lenet"},
          .config = {{"model", "lenet"}}};
}

TEST(ResultJson, HasTheAgreedSectionsInTheirOrder) {
  const Json json = new_result(example_identity());
  EXPECT_THAT(keys_of(json),
              ElementsAre("program", "format", "version", "commit", "command", "started", "config",
                          "machine", "mode", "batch", "model", "plan", "memory", "start",
                          "resumed_from", "steps", "warm_up_losses", "summary", "evaluation"));
}

TEST(ResultJson, IsValidForARunThatFailedAtOnce) {
  Json result = new_result(example_identity());
  result["error"] = "no such \"model\"\n";
  const Json json = Json::parse(result_text(result));
  EXPECT_EQ(json["error"], "no such \"model\"\n");
  EXPECT_EQ(json["command"], Json::array({"cnn_benchmarks", "--model=lenet"}));
  EXPECT_EQ(json["config"]["model"], "lenet");
  EXPECT_TRUE(json["commit"].is_null());
  EXPECT_TRUE(json["summary"].is_null());
  EXPECT_TRUE(json["model"].is_null());
  EXPECT_TRUE(json["steps"].is_array());
  EXPECT_TRUE(json["steps"].empty());
}

TEST(ResultJson, TakesTextThatIsNotUtf8) {
  RunIdentity run = example_identity();
  run.command.emplace_back("--train_dir=\xff");
  EXPECT_EQ(Json::parse(result_text(new_result(run)))["version"], "0.1");
}

TEST(UtcText, HasMicroseconds) {
  using namespace std::chrono;
  EXPECT_EQ(utc_text(sys_days(year{2026} / 1 / 31) + hours(12) + microseconds(1500)),
            "2026-01-31T12:00:00.001500Z");
  EXPECT_EQ(utc_text({}), "1970-01-01T00:00:00.000000Z");
}

}  // namespace
}  // namespace cnn::bench
