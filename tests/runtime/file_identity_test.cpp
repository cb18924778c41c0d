#include "runtime/file_identity.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace cnn {
namespace {

TEST(FileIdentity, IsOneForAllSpellingsOfAPath) {
  EXPECT_EQ(file_identity("x"), file_identity("./x"));
  EXPECT_EQ(file_identity("a/../x"), file_identity(std::filesystem::current_path() / "x"));
  EXPECT_NE(file_identity("x"), file_identity("y"));
}

TEST(FileIdentity, FollowsLinksToFilesThatExistAndThatDoNot) {
  const tests::TemporaryFolder folder;
  folder.write("one", "text");
  std::filesystem::create_symlink("one", folder / "two");
  std::filesystem::create_symlink("missing", folder / "three");
  std::filesystem::create_symlink("three", folder / "four");
  EXPECT_EQ(file_identity(folder / "two"), file_identity(folder / "one"));
  EXPECT_EQ(file_identity(folder / "four"), file_identity(folder / "missing"));
}

TEST(FileIdentity, EndsAtALinkToItself) {
  const tests::TemporaryFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_NE(file_identity(folder / "loop"), "");
}

TEST(FileIdentity, IsEmptyForDevices) {
  const tests::TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/null", folder / "link");
  for (const std::string path : {"/dev/stdout", "/dev/fd/3", "/dev/null", "/dev/../dev/null"}) {
    EXPECT_EQ(file_identity(path), "") << path;
  }
  EXPECT_EQ(file_identity(folder / "link"), "");
  EXPECT_NE(file_identity("/dev/shm/file"), "");
}

}  // namespace
}  // namespace cnn
