#include "bench/run/stop_saver.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using tests::TemporaryFolder;

void take(VariableSnapshot& into, const TemporaryFolder& folder, std::int64_t step) {
  into.options = {.train_dir = folder.path(), .global_step = step};
  into.tensors = {{"v/a", {2}}};
  into.values = {{static_cast<float>(step), 1}};
}

std::string checkpoint(const TemporaryFolder& folder, int step) {
  return folder / ("model.ckpt-" + std::to_string(step) + ".safetensors");
}

// Waits for the file for as long as a loaded machine may take.
bool appears(const std::string& path) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!std::filesystem::exists(path) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return std::filesystem::exists(path);
}

TEST(StopSaver, SavesTheNewestSnapshotOnceItIsAskedToEnd) {
  const TemporaryFolder folder;
  std::atomic<bool> request{false};
  StopSaver saver([&] { return request.load(); });
  for (const int step : {1, 2}) {
    saver.update([&](VariableSnapshot& into) { take(into, folder, step); });
  }
  request = true;
  ASSERT_TRUE(appears(checkpoint(folder, 2)));
  saver.stop();
  EXPECT_EQ(saver.saved_step(), 2);
  EXPECT_FALSE(std::filesystem::exists(checkpoint(folder, 1)));
  float value = 0;
  data::load(checkpoint(folder, 2), std::vector<data::NamedTensor>{{"v/a", {2}}},
             [&](std::size_t, std::span<const float> values) { value = values[0]; });
  EXPECT_EQ(value, 2);
}

TEST(StopSaver, WritesNothingUnlessItIsAskedTo) {
  const TemporaryFolder folder;
  std::atomic<int> looks{0};
  StopSaver saver([&] {
    ++looks;
    return false;
  });
  saver.update([&](VariableSnapshot& into) { take(into, folder, 1); });
  while (looks < 3) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  saver.stop();
  EXPECT_EQ(saver.saved_step(), std::nullopt);
  EXPECT_TRUE(folder.names().empty());
}

TEST(StopSaver, LeavesTheFolderToItsCallerWhilePaused) {
  const TemporaryFolder folder;
  std::atomic<int> looks{0};
  StopSaver saver([&] { return ++looks > 0; });
  auto paused = saver.pause();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(looks, 0);
  EXPECT_TRUE(folder.names().empty());
  paused.unlock();
  saver.update([&](VariableSnapshot& into) { take(into, folder, 4); });
  EXPECT_TRUE(appears(checkpoint(folder, 4)));
}

TEST(StopSaver, KeepsWhyItCouldNotSave) {
  const TemporaryFolder folder;
  folder.write("file", "");
  StopSaver saver([] { return true; });
  saver.update([&](VariableSnapshot& into) {
    take(into, folder, 1);
    into.options.train_dir = folder.path() / "file";
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (bool tried = false; !tried && std::chrono::steady_clock::now() < end;) {
    const auto paused = saver.pause();
    tried = !saver.problem().empty();
  }
  saver.stop();
  EXPECT_NE(saver.problem().find("cannot save a checkpoint"), std::string::npos);
  EXPECT_EQ(saver.saved_step(), std::nullopt);
}

}  // namespace
}  // namespace cnn::bench
