#include <algorithm>
#include <chrono>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "data/checkpoint.h"
#include "runtime/error.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<NamedTensor> two_variables{{"v/a", {2}}, {"v/b", {2, 3}}};

// Saves variables whose elements all equal `value`.
fs::path save_constant(const SaveOptions& options, float value) {
  std::vector<float> values;
  return save(options, two_variables, [&](std::size_t index) {
    values.assign(index == 0 ? 2 : 6, value);
    return std::span<const float>(values);
  });
}

std::vector<float> load_all(const fs::path& path) {
  std::vector<float> all;
  load(path, two_variables, [&](std::size_t, std::span<const float> values) {
    all.insert(all.end(), values.begin(), values.end());
  });
  return all;
}

TEST(Checkpoint, IsFoundAndLoadedAsSaved) {
  const TemporaryFolder folder;
  const fs::path dir = folder.path() / "new" / "folder";
  const fs::path path = save_constant({.train_dir = dir, .global_step = 110}, 2.5F);
  EXPECT_EQ(path, dir / "model.ckpt-110.safetensors");
  EXPECT_EQ(find_newest(dir), path);
  EXPECT_EQ(read_file(dir / "checkpoint"),
            "model_checkpoint_path: \"model.ckpt-110.safetensors\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-110.safetensors\"\n");
  EXPECT_EQ(load_all(path), std::vector<float>(8, 2.5F));
}

TEST(Checkpoint, SaysHowManyRanksHaveTrainedIt) {
  const TemporaryFolder folder;
  const auto ranks = [&](int saved) {
    const fs::path path =
        save_constant({.train_dir = folder.path(), .global_step = saved, .ranks = saved}, 1);
    return load(path, two_variables, [](std::size_t, std::span<const float>) {}).ranks;
  };
  EXPECT_EQ(ranks(1), 1);
  EXPECT_EQ(ranks(6), 6);
  EXPECT_EQ(load_all(folder.path() / "model.ckpt-6.safetensors"), std::vector<float>(8, 1));
}

TEST(Checkpoint, KeepsTheNewestOnesOnly) {
  const TemporaryFolder folder;
  folder.write("model.ckpt-notes.txt", "mine");
  for (const std::int64_t step : {9, 10, 100, 101}) {
    save_constant({.train_dir = folder.path(), .global_step = step, .max_to_keep = 2}, 1);
  }
  EXPECT_THAT(folder.names(), ElementsAre("checkpoint", "model.ckpt-100.safetensors",
                                          "model.ckpt-101.safetensors", "model.ckpt-notes.txt"));
  save_constant({.train_dir = folder.path(), .global_step = 102, .max_to_keep = 0}, 1);
  EXPECT_EQ(folder.names().size(), 5U);
}

// Saves these steps one after the other, of which two stay, and returns the steps that are left.
std::vector<std::int64_t> steps_left(const fs::path& dir, const std::vector<std::int64_t>& steps) {
  for (const std::int64_t step : steps) {
    save_constant({.train_dir = dir, .global_step = step, .max_to_keep = 2}, 1);
  }
  std::vector<std::int64_t> left;
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.path().extension() == ".safetensors") {
      left.push_back(step_of(entry.path()));
    }
  }
  std::ranges::sort(left);
  return left;
}

TEST(Checkpoint, KeepsTheNewestByAgeWhereATrainingWentBack) {
  const TemporaryFolder folder;
  for (const std::int64_t step : {3, 40, 50}) {
    save_constant({.train_dir = folder.path(), .global_step = step}, 1);
  }
  const std::string listed = read_file(folder.path() / "checkpoint");
  folder.write("checkpoint", "model_checkpoint_path: \"model.ckpt-3.safetensors\"\n" +
                                 listed.substr(listed.find('\n') + 1));
  EXPECT_THAT(steps_left(folder.path(), {5}), ElementsAre(5, 50));
  EXPECT_THAT(steps_left(folder.path(), {7, 9}), ElementsAre(7, 9));
  EXPECT_EQ(find_newest(folder.path()), folder.path() / "model.ckpt-9.safetensors");
}

TEST(Checkpoint, TakesThoseThatTheIndexDoesNotListForOlder) {
  const TemporaryFolder folder;
  for (const char* step : {"40", "3", "50"}) {
    folder.write("model.ckpt-" + std::string(step) + ".safetensors", "");
  }
  folder.write("checkpoint", "model_checkpoint_path: \"model.ckpt-3.safetensors\"\n");
  EXPECT_THAT(steps_left(folder.path(), {5}), ElementsAre(3, 5));
  folder.write("checkpoint", std::string(100'000, '\"'));
  EXPECT_THAT(steps_left(folder.path(), {4}), ElementsAre(4, 5));
}

TEST(Checkpoint, NamesNoMoreInTheIndexThanIsRead) {
  const TemporaryFolder folder;
  for (int step = 0; step < 1500; ++step) {
    folder.write("model.ckpt-" + std::to_string(1'000'000'000'000 + step) + ".safetensors", "");
  }
  const fs::path path = save_constant(
      {.train_dir = folder.path(), .global_step = 2'000'000'000'000, .max_to_keep = 0}, 1);
  EXPECT_LT(fs::file_size(folder.path() / "checkpoint"), 65536U);
  EXPECT_EQ(find_newest(folder.path()), path);
}

TEST(Checkpoint, NeverDeletesTheOneJustSavedEvenWithTheLowestNumber) {
  const TemporaryFolder folder;
  for (const std::int64_t step : {100, 200, 5}) {
    save_constant({.train_dir = folder.path(), .global_step = step, .max_to_keep = 1}, 1);
  }
  EXPECT_EQ(find_newest(folder.path()), folder.path() / "model.ckpt-5.safetensors");
  EXPECT_THAT(folder.names(), ElementsAre("checkpoint", "model.ckpt-5.safetensors"));
}

TEST(Checkpoint, KeepsTheNewestFiniteOneAfterADivergence) {
  const TemporaryFolder folder;
  const auto save_one = [&](std::int64_t step, float value) {
    save_constant({.train_dir = folder.path(), .global_step = step, .max_to_keep = 1}, value);
    return folder.names();
  };
  save_one(1, 1);
  save_one(2, 1);
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(save_one(3, value),
                ElementsAre("checkpoint", "model.ckpt-2.safetensors", "model.ckpt-3.safetensors"));
    EXPECT_THAT(save_one(4, value),
                ElementsAre("checkpoint", "model.ckpt-2.safetensors", "model.ckpt-4.safetensors"));
  }
  EXPECT_EQ(find_newest(folder.path()), folder.path() / "model.ckpt-4.safetensors");
  EXPECT_THAT(read_file(folder.path() / "checkpoint"), HasSubstr("\"model.ckpt-2.safetensors\""));
  EXPECT_THAT(save_one(5, 1), ElementsAre("checkpoint", "model.ckpt-5.safetensors"));
}

TEST(Checkpoint, TakesOneThatCannotBeReadForNotFinite) {
  const TemporaryFolder folder;
  save_constant({.train_dir = folder.path(), .global_step = 1, .max_to_keep = 3}, 1);
  folder.write("model.ckpt-2.safetensors", "damaged");
  folder.write("checkpoint",
               "model_checkpoint_path: \"model.ckpt-2.safetensors\"\n"
               "all_model_checkpoint_paths: \"model.ckpt-1.safetensors\"\n"
               "all_model_checkpoint_paths: \"model.ckpt-2.safetensors\"\n");
  save_constant({.train_dir = folder.path(), .global_step = 3, .max_to_keep = 1}, std::nanf(""));
  EXPECT_THAT(folder.names(),
              ElementsAre("checkpoint", "model.ckpt-1.safetensors", "model.ckpt-3.safetensors"));
}

TEST(Checkpoint, ReplacesOneOfTheSameStep) {
  const TemporaryFolder folder;
  save_constant({.train_dir = folder.path(), .global_step = 7}, 1);
  const fs::path path = save_constant({.train_dir = folder.path(), .global_step = 7}, 2);
  EXPECT_EQ(load_all(path), std::vector<float>(8, 2));
}

TEST(Checkpoint, CleansUpAfterAKilledWriter) {
  const TemporaryFolder folder;
  folder.write("model.ckpt-3.safetensors.tmp", "half");
  folder.write("checkpoint.tmp", "half");
  folder.write("notes.tmp", "mine");
  save_constant({.train_dir = folder.path(), .global_step = 4}, 1);
  EXPECT_THAT(folder.names(), ElementsAre("checkpoint", "model.ckpt-4.safetensors", "notes.tmp"));
}

TEST(Checkpoint, SaysWhichFolderCannotBeMade) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("file", "");
  for (const fs::path& dir : {file, file / "sub", fs::path("/proc/no"), fs::path()}) {
    EXPECT_THAT(error_of([&] { save_constant({.train_dir = dir}, 1); }),
                AllOf(HasSubstr("cannot be made"), HasSubstr(dir.string())));
  }
}

// A limit on the file size stands for a full disk: the write fails halfway.
TEST(Checkpoint, LeavesTheOldOneWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  const fs::path old = save_constant({.train_dir = folder.path(), .global_step = 1}, 5);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = error_of(
      [&] { save_constant({.train_dir = folder.path(), .global_step = 2, .max_to_keep = 1}, 6); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, AllOf(HasSubstr("cannot write"), HasSubstr("model.ckpt-2.safetensors")));
  EXPECT_EQ(find_newest(folder.path()), old);
  EXPECT_EQ(load_all(old), std::vector<float>(8, 5));
  EXPECT_THAT(folder.names(), ElementsAre("checkpoint", "model.ckpt-1.safetensors"));
}

TEST(Checkpoint, LeavesTheOldOneWhenTheValuesCannotBeHad) {
  const TemporaryFolder folder;
  save_constant({.train_dir = folder.path(), .global_step = 1}, 5);
  EXPECT_THAT(error_of([&] {
                save({.train_dir = folder.path(), .global_step = 2}, two_variables,
                     [](std::size_t) -> std::span<const float> { throw Error("device is gone"); });
              }),
              HasSubstr("device is gone"));
  EXPECT_THAT(folder.names(), ElementsAre("checkpoint", "model.ckpt-1.safetensors"));
}

// The step is also the value, so a mixture of two checkpoints would show.
[[noreturn]] void save_until_killed(const fs::path& dir, std::int64_t step) {
  while (true) {
    ++step;
    save_constant({.train_dir = dir, .global_step = step, .max_to_keep = 2},
                  static_cast<float>(step));
  }
}

TEST(Checkpoint, SurvivesAKillAtAnyTime) {
  const TemporaryFolder folder;
  std::int64_t last = 1;
  save_constant({.train_dir = folder.path(), .global_step = last}, 1);
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      save_until_killed(folder.path(), last);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(1000 + 337 * round));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const auto newest = find_newest(folder.path());
    ASSERT_TRUE(newest.has_value());
    const std::int64_t step = step_of(*newest);
    ASSERT_GE(step, last);
    ASSERT_EQ(load_all(*newest), std::vector<float>(8, static_cast<float>(step)));
    last = step;
  }
  EXPECT_GT(last, 1);
}

}  // namespace
}  // namespace cnn::data
