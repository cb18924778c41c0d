// Tests whole runs in an emulated container of 512 MiB. Fake control-group files state the limit
// and count the memory that the program really holds.

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr std::size_t limit = std::size_t{512} << 20U;

struct Contained {
  Finished run;
  std::size_t peak_bytes = 0;  // the most memory that the program held at once
};

// Returns the process that this one started and that runs the program, or 0 if it has not begun or
// has ended.
pid_t program_started() {
  std::ifstream children("/proc/thread-self/children");
  for (pid_t child = 0; children >> child;) {
    std::error_code none;
    const auto runs =
        std::filesystem::read_symlink("/proc/" + std::to_string(child) + "/exe", none);
    if (runs.filename() == std::filesystem::path(CNN_PROGRAM).filename()) {
      return child;
    }
  }
  return 0;
}

// Returns the bytes that a process holds except pages of files, which the system can reclaim.
std::size_t bytes_held_by(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::size_t bytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:")) {
      bytes += std::stoull(line.substr(line.find(':') + 1)) << 10U;
    }
  }
  return bytes;
}

// The folder that the program sees as /sys/fs/cgroup. It has the files of both versions of control
// groups.
class ControlGroup {
 public:
  ControlGroup() {
    for (const auto& [of_limit, of_usage] : names_) {
      folder_.write(of_limit, std::to_string(limit) + "\n");
      folder_.write(of_usage, std::to_string(base_) + "\n");
    }
  }
  std::string path() const { return folder_.path().string(); }

  // Replaces the file atomically, because a reader would take an empty file for no limit.
  void count(std::size_t bytes) const {
    for (const auto& [of_limit, of_usage] : names_) {
      const auto written =
          folder_.write(of_usage + ".new", std::to_string(std::max(bytes, base_)) + "\n");
      std::filesystem::rename(written, folder_.path() / of_usage);
    }
  }

 private:
  // This exceeds the memory of a program when it reads its limit, so all runs find the same limit.
  std::size_t base_ = std::size_t{24} << 20U;
  TemporaryFolder folder_;
  std::array<std::pair<std::string, std::string>, 2> names_{
      {{"memory.max", "memory.current"},
       {"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"}}};
};

Words in_namespace(const std::string& script, const Words& arguments) {
  Words words{"/usr/bin/env", "unshare", "--mount", "--map-root-user", "/bin/sh", "-c", script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

class LittleMemory : public testing::Test {
 protected:
  void SetUp() override {
    const ControlGroup group;
    const Finished run = run_and(
        in_namespace("mount --bind \"$0\" /sys/fs/cgroup", {group.path()}),
        [](const Finished&) { return false; }, [] {});
    if (run.status != 0) {
      GTEST_SKIP() << "bind mounts are not possible here: " << run.err;
    }
  }

  static Contained run_contained(const Words& flags) {
    const ControlGroup group;
    Words arguments{group.path(), CNN_PROGRAM, "--device=cpu", "--model=trivial"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Contained result;
    result.run = run_and(
        in_namespace("mount --bind \"$0\" /sys/fs/cgroup && exec \"$@\"", arguments),
        [&](const Finished& /*so_far*/) {
          if (const pid_t program = program_started(); program != 0) {
            const std::size_t held = bytes_held_by(program);
            group.count(held);
            result.peak_bytes = std::max(result.peak_bytes, held);
          }
          return false;
        },
        [] {});
    return result;
  }

  static Contained train(int batch_size) {
    return run_contained({"--batch_size=" + std::to_string(batch_size), "--num_batches=2",
                          "--num_warmup_batches=1"});
  }
};

void expect_trained(const Contained& contained) {
  EXPECT_EQ(contained.run.status, 0) << contained.run.err;
  EXPECT_THAT(contained.run.out, HasSubstr("\ntotal images/sec: "));
  EXPECT_GT(contained.peak_bytes, std::size_t{50} << 20U) << "the variables alone";
  // Pages of files that the program cannot do without.
  const std::size_t code = std::size_t{16} << 20U;
  EXPECT_LT(contained.peak_bytes, limit - code) << "the system would have killed it\n"
                                                << contained.run.err;
}

TEST_F(LittleMemory, IsEnoughToTrainInIt) { expect_trained(train(32)); }

TEST_F(LittleMemory, HoldsTheLargestBatchThatIsSaidToFit) {
  const Contained refused = train(10'000);
  EXPECT_EQ(refused.run.status, 3) << refused.run.err;
  std::smatch found;
  const std::regex text("the largest --batch_size that fits is ([0-9]+);");
  ASSERT_TRUE(std::regex_search(refused.run.err, found, text)) << refused.run.err;
  const int largest = std::stoi(found[1]);
  EXPECT_GT(largest, 32);
  expect_trained(train(largest));
  EXPECT_EQ(train(largest + 1).run.status, 3);
}

TEST_F(LittleMemory, IsToldInMiBWithTheLargestTensorWhereItIsTooLittle) {
  const Contained refused = train(500);
  EXPECT_EQ(refused.run.status, 3) << refused.run.err;
  EXPECT_TRUE(refused.run.step_lines().empty());
  EXPECT_THAT(refused.run.err,
              AllOf(HasSubstr("OOM when allocating tensor with shape[500,154587] and type float"),
                    testing::ContainsRegex("less [45][0-9] MiB that stay free")));
  std::smatch found;
  const std::regex text(
      "trivial with --batch_size=500 needs ([0-9]+)[.][0-9]{2} MiB, but "
      "(4[0-9]{2})[.][0-9]{2} MiB are free");
  ASSERT_TRUE(std::regex_search(refused.run.err, found, text)) << refused.run.err;
  EXPECT_GT(std::stoi(found[1]), std::stoi(found[2]));
  // The images take 295 MiB; how often a step holds them depends on the processor.
  EXPECT_LT(std::stoi(found[1]), 5 * 295);
  EXPECT_LT(refused.peak_bytes, std::size_t{100} << 20U) << "the refused run took memory";
}

TEST_F(LittleMemory, LeavesRoomForAPlayedDevice) {
  const Contained contained = run_contained(
      {"--device_memory_mb=256", "--batch_size=32", "--num_batches=2", "--num_warmup_batches=1"});
  expect_trained(contained);
  const Contained refused = run_contained({"--device_memory_mb=256", "--batch_size=300"});
  EXPECT_EQ(refused.run.status, 3) << refused.run.err;
  EXPECT_THAT(refused.run.err, HasSubstr("but 256.00 MiB are free"));
}

}  // namespace
}  // namespace cnn::tests
