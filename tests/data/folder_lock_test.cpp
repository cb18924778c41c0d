#include "data/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(FolderLock, RefusesASecondRunAndNamesTheFirst) {
  const TemporaryFolder folder;
  const FolderLock first(folder.path());
  EXPECT_THAT(error_of([&] { const FolderLock second(folder.path()); }),
              AllOf(HasSubstr(folder.path().string()),
                    HasSubstr("process " + std::to_string(::getpid()) + " is training there")));
}

TEST(FolderLock, EndsWithItsOwner) {
  const TemporaryFolder folder;
  std::optional<FolderLock> lock(std::in_place, folder.path());
  lock.reset();
  EXPECT_EQ(error_of([&] { const FolderLock next(folder.path()); }), "");
}

TEST(FolderLock, DiesWithItsProcess) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder.path());
    ::_exit(0);  // exits without running destructors
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(error_of([&] { const FolderLock next(folder.path()); }), "");
}

TEST(FolderLock, MakesTheFolder) {
  const TemporaryFolder folder;
  const FolderLock lock(folder.path() / "a/b");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "a/b"));
}

TEST(FolderLock, HidesNoCheckpointBehindAFolderOfItsName) {
  const TemporaryFolder folder;
  folder.write("model.ckpt-3.safetensors", "weights");
  const auto checkpoint = folder.path() / "model.ckpt-3";
  EXPECT_THAT(error_of([&] { const FolderLock lock(checkpoint); }),
              AllOf(HasSubstr("model.ckpt-3.safetensors is a checkpoint"), HasSubstr("folder")));
  EXPECT_FALSE(std::filesystem::exists(checkpoint));
}

TEST(FolderLock, SaysWhatIsInTheWay) {
  const TemporaryFolder folder;
  const auto file = folder.write("file", "x");
  EXPECT_THAT(error_of([&] { const FolderLock lock(file); }), HasSubstr("no folder"));
}

}  // namespace
}  // namespace cnn::data
