#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "data/checkpoint.h"
#include "data/safetensors.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

TEST(FindNewest, FindsNothingWhereNothingIs) {
  const TemporaryFolder folder;
  EXPECT_EQ(find_newest(folder.path()), std::nullopt);
  EXPECT_EQ(find_newest(folder.path() / "no"), std::nullopt);
  EXPECT_EQ(find_newest(folder.path() / "model.ckpt-3"), std::nullopt);
  EXPECT_EQ(find_newest(""), std::nullopt);
}

TEST(FindNewest, TakesAPathWithOrWithoutItsEnding) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("model.ckpt-189.safetensors", "");
  EXPECT_EQ(find_newest(path), path);
  EXPECT_EQ(find_newest(folder.path() / "model.ckpt-189"), path);
}

TEST(FindNewest, TakesTheHighestNumberWithoutAnIndex) {
  const TemporaryFolder folder;
  folder.write("model.ckpt-9.safetensors", "");
  const fs::path highest = folder.write("model.ckpt-10.safetensors", "");
  folder.write("model.ckpt-99.safetensors.tmp", "");
  folder.write("model.ckpt-98.txt", "");
  folder.write("model.ckpt--97.safetensors", "");
  folder.write("model.ckpt-99999999999999999999.safetensors", "");
  folder.write("my-model.ckpt-96.safetensors", "");
  fs::create_directory(folder.path() / "model.ckpt-95.safetensors");
  EXPECT_EQ(find_newest(folder.path()), highest);
}

TEST(FindNewest, PrefersTheIndexUnlessItsFileIsGone) {
  const TemporaryFolder folder;
  const fs::path low = folder.write("model.ckpt-9.safetensors", "");
  const fs::path high = folder.write("model.ckpt-10.safetensors", "");
  folder.write("checkpoint", "model_checkpoint_path: \"model.ckpt-9\"\nmore: \"x\"\n");
  EXPECT_EQ(find_newest(folder.path()), low);
  folder.write("checkpoint", "model.ckpt-9.safetensors");
  EXPECT_EQ(find_newest(folder.path()), low);
  folder.write("checkpoint", "model_checkpoint_path: \"" + low.string() + "\"\n");
  EXPECT_EQ(find_newest(folder.path()), low);
  for (const std::string text : {"", "\n", "\"", "model_checkpoint_path: \"model.ckpt-7\"",
                                 "/etc/passwd", "..", "model_checkpoint_path: \"\""}) {
    folder.write("checkpoint", text);
    EXPECT_EQ(find_newest(folder.path()), high) << text;
  }
  folder.write("checkpoint", std::string(1'000'000, 'x'));
  EXPECT_EQ(find_newest(folder.path()), high);
}

TEST(FindNewest, SaysWhichCheckpointItFellBackTo) {
  const TemporaryFolder folder;
  folder.write("model.ckpt-9.safetensors", "");
  folder.write("model.ckpt-10.safetensors", "");
  std::vector<std::string> notices;
  find_newest(folder.path(), &notices);
  EXPECT_TRUE(notices.empty());
  for (const std::string text : {"", "model.ckpt-7", "/etc/passwd"}) {
    folder.write("checkpoint", text);
    notices.clear();
    find_newest(folder.path(), &notices);
    ASSERT_EQ(notices.size(), 1U) << text;
    EXPECT_THAT(notices.front(), AllOf(HasSubstr((folder.path() / "checkpoint").string()),
                                       HasSubstr(text), HasSubstr("model.ckpt-10.safetensors")));
  }
}

// With each of these indices the program once started from step 0 and overwrote the index.
TEST(FindNewest, RefusesAnIndexThatCannotBeFollowed) {
  const TemporaryFolder folder;
  folder.write("model.ckpt-10.safetensors", "");
  const fs::path index = folder.path() / "checkpoint";
  const auto refusal = [&] { return error_of([&] { find_newest(folder.path()); }); };
  fs::create_symlink("/nowhere/checkpoint", index);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(index.string()), HasSubstr("/nowhere/checkpoint"),
                               HasSubstr("delete it")));
  fs::remove(index);
  fs::create_symlink("checkpoint", index);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(index.string()), HasSubstr("link to checkpoint")));
  fs::remove(index);
  fs::create_directory(index);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(index.string()), HasSubstr("no regular file")));
  fs::remove(index);
  folder.write("checkpoint", "model_checkpoint_path: \"model.ckpt-99999999999999999999\"");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model.ckpt-99999999999999999999"), HasSubstr("63 bits")));
}

TEST(FindNewest, RefusesAFolderWhoseCheckpointsAreAllUnusable) {
  const TemporaryFolder folder;
  const auto refusal = [&] { return error_of([&] { find_newest(folder.path()); }); };
  folder.write("checkpoint", "model.ckpt-7");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model.ckpt-7"), HasSubstr("not there")));
  fs::remove(folder.path() / "checkpoint");
  const fs::path link = folder.path() / "model.ckpt-7.safetensors";
  fs::create_symlink("/nowhere/model.ckpt-7.safetensors", link);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(link.string()), HasSubstr("cannot be opened")));
  fs::remove(link);
  folder.write("model.ckpt-99999999999999999999.safetensors", "");
  EXPECT_THAT(refusal(), HasSubstr("63 bits"));
}

TEST(FindNewest, FollowsAnIndexThatIsALink) {
  const TemporaryFolder folder, elsewhere;
  folder.write("model.ckpt-10.safetensors", "");
  const fs::path low = folder.write("model.ckpt-9.safetensors", "");
  fs::create_symlink(elsewhere.write("index", "model.ckpt-9"), folder.path() / "checkpoint");
  EXPECT_EQ(find_newest(folder.path()), low);
}

TEST(FindNewest, SaysThatItCannotReadCheckpointsOfTensorFlow) {
  const TemporaryFolder folder;
  folder.write("model.ckpt-110.index", "");
  folder.write("checkpoint", "model_checkpoint_path: \"model.ckpt-110\"\n");
  EXPECT_THAT(error_of([&] { find_newest(folder.path()); }),
              AllOf(HasSubstr("model.ckpt-110.index"), HasSubstr("TensorFlow")));
}

TEST(StepOf, IsTheNumberAfterTheLastDash) {
  EXPECT_EQ(step_of("/path/to/checkpoints/model.ckpt-1243"), 1243);
  EXPECT_EQ(step_of("a-1/model.ckpt-12.safetensors"), 12);
  EXPECT_EQ(step_of("model.ckpt"), 0);
  EXPECT_EQ(step_of("model.ckpt-x"), 0);
  EXPECT_EQ(step_of("model-3.ckpt-99999999999999999999"), 0);
}

// Writes the smallest complete file, which has no tensors.
fs::path write_whole_checkpoint(const TemporaryFolder& folder, const std::string& name) {
  return folder.write(name, safetensors("{}", ""));
}

TEST(FindWholeBefore, SkipsDamagedFilesAndThoseThatAreNotOlder) {
  const TemporaryFolder folder;
  const fs::path damaged = folder.write("model.ckpt-12.safetensors", "cut");
  EXPECT_EQ(find_whole_before(damaged), std::nullopt);
  write_whole_checkpoint(folder, "model.ckpt-20.safetensors");
  EXPECT_EQ(find_whole_before(damaged), std::nullopt);
  const fs::path oldest = write_whole_checkpoint(folder, "model.ckpt-3.safetensors");
  folder.write("model.ckpt-7.safetensors", "cut too");
  EXPECT_EQ(find_whole_before(damaged), oldest);
  const fs::path older = write_whole_checkpoint(folder, "model.ckpt-9.safetensors");
  EXPECT_EQ(find_whole_before(damaged), older);
}

TEST(FindWholeBefore, LooksInTheCurrentFolderForAPathWithoutAFolder) {
  const TemporaryFolder folder;
  write_whole_checkpoint(folder, "model.ckpt-3.safetensors");
  folder.write("model.ckpt-12.safetensors", "cut");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  std::optional<fs::path> found;
  const std::string error =
      error_of([&] { found = find_whole_before("model.ckpt-12.safetensors"); });
  fs::current_path(before);
  EXPECT_EQ(error, "");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->filename(), "model.ckpt-3.safetensors");
}

}  // namespace
}  // namespace cnn::data
