#include "data/file.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(InputFile, ReadsAnywhereButNotBeyondTheEnd) {
  const TemporaryFolder folder;
  const InputFile file(folder.write("a", "0123456789"));
  EXPECT_EQ(file.size(), 10U);
  std::array<std::byte, 3> bytes{};
  file.read(7, bytes);
  EXPECT_EQ(static_cast<char>(bytes[0]), '7');
  EXPECT_THAT(error_of([&] { file.read(8, bytes); }), HasSubstr("ends after 10 bytes"));
}

TEST(InputFile, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { InputFile(folder.path()); }), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of([&] { InputFile("/dev/zero"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of([&] { InputFile(folder.path() / "b"); }), HasSubstr("No such file"));
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { InputFile{pipe}; }), HasSubstr("not a regular file"));
}

TEST(AtomicFile, ShowsNothingBeforeCommitAndLeavesNothingWithoutIt) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a", "old");
  {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span("new", 3)));
    EXPECT_THAT(folder.names(), ElementsAre("a", "a.tmp"));
    EXPECT_EQ(read_file(path), "old");
  }
  EXPECT_THAT(folder.names(), ElementsAre("a"));
  EXPECT_EQ(read_file(path), "old");
}

TEST(AtomicFile, ReplacesTheFileAndAnyLeftover) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a", "old");
  folder.write("a.tmp", "left by a killed writer");
  write_atomically(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_THAT(folder.names(), ElementsAre("a"));
}

TEST(AtomicFile, DoesNotWriteThroughALinkInItsWay) {
  const TemporaryFolder folder;
  const fs::path other = folder.write("other", "precious");
  fs::create_symlink(other, folder.path() / "a.tmp");
  write_atomically(folder.path() / "a", "new");
  EXPECT_EQ(read_file(other), "precious");
}

TEST(AtomicFile, SaysWhereItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { write_atomically(folder.path() / "no" / "a", "x"); }),
              AllOf(HasSubstr("no/a.tmp"), HasSubstr("No such file")));
  fs::create_directory(folder.path() / "a");
  EXPECT_THAT(error_of([&] { write_atomically(folder.path() / "a", "x"); }),
              HasSubstr("cannot rename to"));
  EXPECT_THAT(folder.names(), ElementsAre("a"));
}

TEST(Printable, CutsAndCleansWhatAFileSays) {
  EXPECT_EQ(printable("a\n\x1b[2J\xff"), "a??[2J?");
  EXPECT_EQ(printable(std::string(200, 'a')), std::string(120, 'a') + "...");
}

}  // namespace
}  // namespace cnn::data
