#include "runtime/choice_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

const ChoiceFile::Owner ours{.device = "Some CPU, 2 threads",
                             .version = "library 1",
                             .is_choice = [](std::string_view text) {
                               return text == "fast" || text == "slow" || text == "two\tfields";
                             }};
const std::string start = "Some CPU, 2 threads\tlibrary 1\t";
const std::string header = "# plan cache of cnn_benchmarks, format 1\n";

class ChoiceFileTest : public testing::Test {
 protected:
  std::string message() const {
    return error_of([&] { ChoiceFile(path, ours, true); });
  }

  const TemporaryFolder folder_;
  const std::string path = folder_ / "plans";
};

TEST_F(ChoiceFileTest, FindsWhatItStoredInALaterRun) {
  ChoiceFile file(path, ours, true);
  file.store("a key", {.choice = "two\tfields", .seconds = 0.5});
  EXPECT_EQ(read_file(path), header + start + "a key\ttwo\tfields\t0.5\n");
  const ChoiceFile again(path, ours, false);
  ASSERT_NE(again.find("a key"), nullptr);
  EXPECT_EQ(again.find("a key")->choice, "two\tfields");
  EXPECT_EQ(again.find("a key")->seconds, 0.5);
  EXPECT_EQ(again.find("key"), nullptr);
}

TEST_F(ChoiceFileTest, KeepsLinesOfOthersAndDoesNotUseThem) {
  const std::string lines = header + "Other CPU, 2 threads\tlibrary 1\tkey\tanything\t1\n" +
                            "Some CPU, 2 threads\tlibrary 2\tkey\t7\t-\t0\t1\n";
  folder_.write("plans", lines);
  ChoiceFile file(path, ours, false);
  EXPECT_EQ(file.size(), 0U);
  EXPECT_EQ(file.foreign(), 2U);
  file.store("key", {.choice = "slow", .seconds = 2});
  EXPECT_EQ(read_file(path), lines + start + "key\tslow\t2\n");
}

TEST_F(ChoiceFileTest, NamesALineThatIsDamaged) {
  for (const std::string& line :
       {start + "key\tfast", start + "key\tunknown\t1", start + "key\tfast\t1x",
        start + "key\tfast\tnan", start + "key\tfast\tinf", std::string(),
        std::string("\0\xff\t\t\t", 5)}) {
    folder_.write("plans", header + line + "\n");
    EXPECT_THAT(message(), testing::HasSubstr("line 2 of the plan cache " + path)) << line;
  }
}

TEST_F(ChoiceFileTest, RefusesWhatIsNoPlanCache) {
  folder_.write("plans",
                "\x7f"
                "ELF\n");
  EXPECT_THAT(message(), testing::HasSubstr("is no plan cache: its first line"));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_THAT(message(), testing::HasSubstr("it is no regular file"));
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);  // reading the FIFO would block for ever
  EXPECT_THAT(message(), testing::HasSubstr("it is no regular file"));
}

TEST_F(ChoiceFileTest, HoldsTheChoicesOfProcessesThatStoreAtOneTime) {
  constexpr int processes = 3, choices_of_each = 20;
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string failure = error_of([&] {
        ChoiceFile file(path, ours, true);
        for (int c = 0; c < choices_of_each; ++c) {
          const std::string key = std::to_string(p) + " " + std::to_string(c) + " ";
          file.store(key + std::string(9000, 'k'), {.choice = "fast", .seconds = 1});
        }
      });
      _exit(failure.empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(ChoiceFile(path, ours, false).size(),
            static_cast<std::size_t>(processes * choices_of_each));
}

}  // namespace
}  // namespace cnn::tests
