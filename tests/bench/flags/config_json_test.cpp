#include "bench/flags/config_json.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace cnn::bench {
namespace {

TEST(ConfigJson, EchoesEveryFlagWithItsValue) {
  std::vector<Setting> settings = default_settings();
  find_setting(settings, "model").value = "lenet";
  find_setting(settings, "undefok").value = std::vector<std::string>{"a", "b"};
  const Json json = config_json(settings);
  EXPECT_EQ(json.size(), default_settings().size());
  EXPECT_EQ(json["model"], "lenet");
  EXPECT_EQ(json["eval"], false);
  EXPECT_EQ(json["display_every"], 10);
  EXPECT_EQ(json["weight_decay"], 4e-5);
  EXPECT_TRUE(json["num_batches"].is_null());
  EXPECT_EQ(json["undefok"], Json::array({"a", "b"}));
  EXPECT_FALSE(json.contains("learning_rate"));
}

}  // namespace
}  // namespace cnn::bench
