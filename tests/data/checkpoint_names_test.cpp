#include "data/checkpoint_names.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST(CheckpointNames, ParseStepTakesDigitsOfAtMost63Bits) {
  EXPECT_EQ(parse_step("0"), 0);
  EXPECT_EQ(parse_step("0110"), 110);
  EXPECT_EQ(parse_step("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_step("9223372036854775808"), std::nullopt);
}

TEST(CheckpointNames, ParseStepTakesNothingButDigits) {
  for (const char* text : {"", "-", "-0", "-5", "+5", " 5", "5 ", "5x", "0x5", "5.0"}) {
    EXPECT_EQ(parse_step(text), std::nullopt) << text;
  }
}

TEST(CheckpointNames, StepTextStandsBetweenTheTwoFixedParts) {
  EXPECT_EQ(step_text("model.ckpt-110.safetensors"), "110");
  EXPECT_EQ(step_text("model.ckpt-.safetensors"), "");
  EXPECT_EQ(step_text("model.ckpt-any thing.safetensors"), "any thing");
  for (const char* name : {"", "model.ckpt-110", "110.safetensors", "model.ckpt.safetensors",
                           "model.ckpt-1.safetensors.tmp", "my-model.ckpt-1.safetensors"}) {
    EXPECT_EQ(step_text(name), std::nullopt) << name;
  }
}

TEST(CheckpointNames, StepInNameIsThatOfAFinishedCheckpointOnly) {
  EXPECT_EQ(step_in_name("model.ckpt-110.safetensors"), 110);
  for (const char* name : {"model.ckpt-.safetensors", "model.ckpt--0.safetensors",
                           "model.ckpt-110.safetensors.tmp", "model.ckpt-110"}) {
    EXPECT_EQ(step_in_name(name), std::nullopt) << name;
  }
}

TEST(CheckpointNames, CheckpointsAreSortedByNumberAndFollowLinks) {
  const TemporaryFolder folder, elsewhere;
  const fs::path nine = folder.write("model.ckpt-9.safetensors", "");
  const fs::path hundred = folder.write("model.ckpt-100.safetensors", "");
  const fs::path link = folder.path() / "model.ckpt-20.safetensors";
  fs::create_symlink(elsewhere.write("stored", ""), link);
  fs::create_symlink("nowhere", folder.path() / "model.ckpt-30.safetensors");
  fs::create_directory(folder.path() / "model.ckpt-40.safetensors");
  folder.write("checkpoint", "");
  EXPECT_THAT(checkpoints_in(folder.path()), ElementsAre(hundred, link, nine));
}

TEST(CheckpointNames, EntriesAreAllOfAFolder) {
  const TemporaryFolder folder;
  EXPECT_TRUE(entries_of(folder.path()).empty());
  const fs::path file = folder.write(".hidden", "");
  const fs::path link = folder.path() / "link";
  fs::create_symlink("nowhere", link);
  fs::create_directory(folder.path() / "sub");
  EXPECT_THAT(entries_of(folder.path()), UnorderedElementsAre(file, link, folder.path() / "sub"));
}

TEST(CheckpointNames, NameTheFolderThatCannotBeListed) {
  const TemporaryFolder folder;
  for (const fs::path& path : {folder.path() / "missing", folder.write("file", "")}) {
    EXPECT_THAT(error_of([&] { checkpoints_in(path); }),
                AllOf(HasSubstr("cannot list the folder"), HasSubstr(path.string())));
  }
}

TEST(CheckpointNames, IsFileOfRegularFilesAndLinksToThem) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("file", "");
  fs::create_symlink(file, folder.path() / "link");
  EXPECT_TRUE(is_file(file));
  EXPECT_TRUE(is_file(folder.path() / "link"));
  EXPECT_FALSE(is_file(folder.path()));
  EXPECT_FALSE(is_file(folder.path() / "missing"));
  EXPECT_FALSE(is_file(""));
}

}  // namespace
}  // namespace cnn::data
