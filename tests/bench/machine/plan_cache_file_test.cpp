#include "bench/machine/plan_cache_file.h"

#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "tests/support/files.h"

namespace cnn::bench {
namespace {

// Sets a variable of the environment, or removes it, and restores it.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* const before = std::getenv(name)) {
      before_ = before;
    }
    set(value);
  }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const std::optional<std::string>& value) {
    value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_);
  }

  const char* name_;
  std::optional<std::string> before_;
};

TEST(UsualPlanCache, LiesInTheCacheFolderOfTheUserAndMakesIt) {
  const tests::TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", folder / "cache");
  EXPECT_EQ(default_plan_cache(), folder / "cache/cnn_benchmarks/plan_cache");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "cache/cnn_benchmarks"));
}

TEST(UsualPlanCache, LiesBelowHomeWhereNoCacheFolderIsNamed) {
  const tests::TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", std::nullopt), home("HOME", folder.path().string());
  EXPECT_EQ(default_plan_cache(), folder / ".cache/cnn_benchmarks/plan_cache");
}

// The standard of these folders says that a relative path is to be ignored.
TEST(UsualPlanCache, IgnoresARelativePath) {
  const tests::TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME", "cache"), home("HOME", folder.path().string());
  EXPECT_EQ(default_plan_cache(), folder / ".cache/cnn_benchmarks/plan_cache");
}

TEST(UsualPlanCache, IsNoneWithoutAFolderThatCanBeMade) {
  const tests::TemporaryFolder folder;
  {
    const Variable cache("XDG_CACHE_HOME", std::nullopt), home("HOME", std::nullopt);
    EXPECT_EQ(default_plan_cache(), std::nullopt);
  }
  const Variable cache("XDG_CACHE_HOME", folder.write("file", "").string());
  EXPECT_EQ(default_plan_cache(), std::nullopt);
}

TEST(PlanCacheNote, CountsTheChoicesOfOthersOnlyIfThereAreAny) {
  EXPECT_EQ(plan_cache_note("/c", 3, 0, "devices"), "plan cache: 3 choices in /c");
  EXPECT_EQ(plan_cache_note("/c", 3, 2, "devices"),
            "plan cache: 3 choices in /c, and 2 for other devices, which are not used");
}

TEST(NoPlanCacheNote, NamesTheFlagThatHelps) {
  EXPECT_THAT(no_plan_cache_note(), testing::HasSubstr("name a file by --plan_cache"));
}

}  // namespace
}  // namespace cnn::bench
