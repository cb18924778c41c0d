#include "bench/flags/settings.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

TEST(Settings, AreOneForEachFlagOfTodayInTheOrderOfTheHelp) {
  const std::vector<Setting> settings = default_settings();
  std::size_t next = 0;
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      if (flag.renamed_to.empty()) {
        ASSERT_LT(next, settings.size());
        EXPECT_EQ(settings[next].flag, &flag);
        EXPECT_EQ(settings[next].value, default_value(flag)) << flag.name;
        EXPECT_FALSE(settings[next].given) << flag.name;
        ++next;
      }
    }
  }
  EXPECT_EQ(next, settings.size());
}

TEST(Settings, AreFoundByNameToBeChanged) {
  std::vector<Setting> settings = default_settings();
  find_setting(settings, "batch_size").value = std::int64_t{12};
  EXPECT_EQ(find_setting(settings, "batch_size").value, Plain(std::int64_t{12}));
}

TEST(Settings, HaveNoneOfAnOlderOrUnknownName) {
  std::vector<Setting> settings = default_settings();
  for (const std::string name : {"learning_rate", "no_such_flag", ""}) {
    EXPECT_EQ(tests::error_of([&] { find_setting(settings, name); }),
              "there is no setting of a flag --" + name);
  }
}

TEST(Settings, BecomeTheConfiguration) {
  std::vector<Setting> settings = default_settings();
  find_setting(settings, "batch_size").value = std::int64_t{12};
  find_setting(settings, "model").value = std::string("vgg16");
  find_setting(settings, "data_dir").value = std::string("folder");
  find_setting(settings, "xla").value = true;  // xla has no member, so it changes nothing
  const Config config = config_of(settings);
  EXPECT_EQ(config.size.batch, 12);
  EXPECT_EQ(config.model.name, "vgg16");
  EXPECT_EQ(config.data.dir, "folder");
  EXPECT_EQ(config.num_gpus, Config{}.num_gpus);
}

}  // namespace
}  // namespace cnn::bench
