#include "layers/cuda/cudnn/plan_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using layers::cuda::Choice;
using layers::cuda::PlanCache;

const PlanCache::Owner h200{.device = "NVIDIA H200",
                            .driver = "580.65.06 for CUDA 13.0",
                            .cudnn_version = 91900,
                            .cublaslt_version = 130100};
const std::string ours = "NVIDIA H200, driver 580.65.06 for CUDA 13.0, cuBLASLt 130100\t91900\t";
constexpr const char* header = "# plan cache of cnn_benchmarks, format 1\n";

// Fixture with a plan cache file for each test.
class PlanCacheFile : public testing::Test {
 protected:
  void write(const std::string& text) const { folder_.write("plans", text); }
  std::string text() const { return read_file(path); }
  std::string message(bool may_create = false) const {
    try {
      const PlanCache cache(path, h200, may_create);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  const TemporaryFolder folder_;
  const std::string path = folder_ / "plans";
};

Choice choice(std::int64_t engine, std::vector<Choice::Knob> knobs, std::size_t workspace) {
  Choice result;
  result.engine = engine;
  result.knobs = std::move(knobs);
  result.workspace = workspace;
  return result;
}

TEST_F(PlanCacheFile, WritesOneLineForEachChoiceAtOnce) {
  PlanCache cache(path, h200, true);
  cache.store("forward f16", {.choice = choice(62, {{2, 4}, {12, -1}}, 131), .seconds = 0.0005});
  cache.store("other", {.choice = choice(0, {}, 0), .seconds = 0.25});
  EXPECT_EQ(text(), std::string(header) + ours + "forward f16\t62\t2=4,12=-1\t131\t0.0005\n" +
                        ours + "other\t0\t-\t0\t0.25\n");
}

TEST_F(PlanCacheFile, FindsWhatItStored) {
  const Choice stored = choice(62, {{2, 4}, {12, -1}}, 131);
  PlanCache(path, h200, true).store("key", {.choice = stored, .seconds = 0.5});
  const PlanCache cache(path, h200, false);
  ASSERT_TRUE(cache.find("key"));
  EXPECT_EQ(cache.find("key")->choice, stored);
  EXPECT_EQ(cache.find("key")->seconds, 0.5);
  EXPECT_FALSE(cache.find("another"));
}

TEST_F(PlanCacheFile, BelievesTheLastLineOfAGraph) {
  write(header + ours + "key\t1\t-\t0\t0.5\n" + ours + "key\t2\t-\t0\t0.4\n");
  const PlanCache cache(path, h200, false);
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_EQ(cache.find("key")->choice.engine, 2);
}

TEST_F(PlanCacheFile, CountsLinesForOthersAndKeepsThem) {
  const std::string line = "\tkey\t1\t-\t0\t0.5\n";
  std::string lines = header;
  for (const std::string owner :
       {"NVIDIA H100, driver 580.65.06 for CUDA 13.0, cuBLASLt 130100\t91900",
        "NVIDIA H200, driver 580.82.07 for CUDA 13.0, cuBLASLt 130100\t91900",
        "NVIDIA H200, driver 580.65.06 for CUDA 13.1, cuBLASLt 130100\t91900",
        "NVIDIA H200, driver 580.65.06 for CUDA 13.0, cuBLASLt 130101\t91900",
        "NVIDIA H200, driver 580.65.06 for CUDA 13.0, cuBLASLt 130100\t91800",
        "NVIDIA H200, driver 13.0\t91900"}) {  // the key of older versions of the program
    lines += owner + line;
  }
  write(lines);
  PlanCache cache(path, h200, false);
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_EQ(cache.foreign(), 6U);
  cache.store("key", {.choice = choice(3, {}, 0), .seconds = 1});
  EXPECT_EQ(text(), lines + ours + "key\t3\t-\t0\t1\n");
}

TEST_F(PlanCacheFile, NamesTheLineThatIsDamaged) {
  for (const std::string& line :
       {ours + "key\t1\t-\t0", ours + "key\t1\t2=\t0\t0.5", ours + "key\tx\t-\t0\t0.5",
        ours + "key\t1\t-\t0\t0.5x", std::string()}) {
    std::string text = header + ours;
    write(text.append("key\t1\t-\t0\t0.5\n").append(line).append("\n"));
    EXPECT_THAT(message(), testing::HasSubstr("line 3 of the plan cache")) << line;
  }
}

TEST_F(PlanCacheFile, SaysThatAnotherFileIsNoPlanCache) {
  write("{}\n");
  EXPECT_THAT(message(), testing::HasSubstr("is no plan cache"));
  write("");
  EXPECT_THAT(message(), testing::HasSubstr("is no plan cache"));
}

TEST_F(PlanCacheFile, IsMadeOnlyWhereItMayBe) {
  EXPECT_THAT(message(), testing::HasSubstr("--tune makes one"));
  EXPECT_EQ(message(true), "");
}

TEST_F(PlanCacheFile, KeepsWhatAnotherProcessHasStoredSinceItWasRead) {
  PlanCache first(path, h200, true), second(path, h200, true);
  first.store("a", {.choice = choice(1, {}, 0), .seconds = 1});
  second.store("b", {.choice = choice(2, {}, 0), .seconds = 2});
  first.store("a", {.choice = choice(3, {}, 0), .seconds = 3});
  EXPECT_EQ(text(), std::string(header) + ours + "a\t3\t-\t0\t3\n" + ours + "b\t2\t-\t0\t2\n");
}

// Each process stores its own choices, which fill more than one buffer. The file does not exist
// before.
TEST_F(PlanCacheFile, HoldsTheChoicesOfProcessesThatStoreAtOneTime) {
  constexpr int processes = 4, choices_of_each = 25;
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      int status = 1;
      try {
        PlanCache cache(path, h200, true);
        for (int c = 0; c < choices_of_each; ++c) {
          const std::string key = std::to_string(p) + " " + std::to_string(c) + " ";
          cache.store(key + std::string(9000, 'k'), {.choice = choice(p, {}, 0), .seconds = 1});
        }
        status = 0;
      } catch (const Error&) {
      }
      _exit(status);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(PlanCache(path, h200, false).size(),
            static_cast<std::size_t>(processes * choices_of_each));
}

TEST_F(PlanCacheFile, RefusesToAddToAFileThatIsNoPlanCacheAnyMore) {
  PlanCache cache(path, h200, true);
  write("notes of mine\n");
  EXPECT_THROW(cache.store("key", {}), Error);
  EXPECT_EQ(text(), "notes of mine\n");
}

TEST(PlanCache, SaysThatItCannotBeWritten) {
  PlanCache cache("/nowhere/plans", h200, true);
  EXPECT_THROW(cache.store("key", {}), Error);
}

}  // namespace
}  // namespace cnn::tests
