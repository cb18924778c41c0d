#include "data/imagenet/open_files.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Returns the number of this process's file descriptors for files of a folder.
std::int64_t files_held_open(const fs::path& folder) {
  std::int64_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    count += fs::read_symlink(entry.path(), ignored).parent_path() == folder ? 1 : 0;
  }
  return count;
}

std::byte first_byte(const InputFile& file) {
  std::byte byte{};
  file.read(0, {&byte, 1});
  return byte;
}

TEST(OpenFiles, OpensAFileOnceWhileItStaysOpen) {
  const TemporaryFolder folder;
  const OpenFiles files(2);
  const auto first = files.get(1, folder.write("a", "A"));
  EXPECT_EQ(first_byte(*first), std::byte{'A'});
  fs::remove(folder.path() / "a");
  EXPECT_EQ(files.get(1, folder.path() / "a"), first);
}

TEST(OpenFiles, HoldsABoundedNumberOpen) {
  const TemporaryFolder folder;
  constexpr std::size_t many = 300;
  const OpenFiles files(many);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < many; ++i) {
      const fs::path path = folder.write(std::to_string(i), std::string(1, static_cast<char>(i)));
      EXPECT_EQ(first_byte(*files.get(i, path)), static_cast<std::byte>(i));
      EXPECT_LE(files_held_open(folder.path()), 129);
    }
  }
  EXPECT_GE(files_held_open(folder.path()), 100) << "some files stay open";
}

TEST(OpenFiles, LeavesAFileOpenThatIsBeingRead) {
  const TemporaryFolder folder;
  constexpr std::size_t many = 300;
  const OpenFiles files(many);
  const auto held = files.get(0, folder.write("held", "H"));
  for (std::size_t i = 1; i < many; ++i) {
    files.get(i, folder.write(std::to_string(i), "x"));
  }
  fs::remove(folder.path() / "held");
  EXPECT_EQ(first_byte(*held), std::byte{'H'});
}

TEST(OpenFiles, TriesAgainAfterAFileThatIsMissing) {
  const TemporaryFolder folder;
  const OpenFiles files(1);
  EXPECT_THAT(error_of([&] { files.get(0, folder.path() / "late"); }), HasSubstr("late"));
  EXPECT_EQ(first_byte(*files.get(0, folder.write("late", "L"))), std::byte{'L'});
}

}  // namespace
}  // namespace cnn::data
