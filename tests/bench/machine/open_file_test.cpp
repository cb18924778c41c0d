#include "bench/machine/open_file.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "tests/support/files.h"

namespace cnn::bench {
namespace {

TEST(OpenFile, IsReadFromItsStartAgainAndAgain) {
  const tests::TemporaryFolder folder;
  const OpenFile file(folder.write("counter", "17\n"));
  ASSERT_TRUE(file.is_open());
  EXPECT_EQ(file.number(), 17U);
  EXPECT_EQ(file.number(), 17U);
  folder.write("counter", "18446744073709551615\n");
  EXPECT_EQ(file.number(), 18446744073709551615U) << "the file's new content";
}

TEST(OpenFile, GivesAsMuchTextAsTheBufferTakes) {
  const tests::TemporaryFolder folder;
  const OpenFile file(folder.write("text", "abcdef"));
  std::array<char, 4> small{};
  EXPECT_EQ(file.text(small), "abcd");
  std::array<char, 16> large{};
  EXPECT_EQ(file.text(large), "abcdef");
  EXPECT_EQ(file.text({}), "");
}

TEST(OpenFile, HasNoNumberWhereItsTextBeginsWithNone) {
  const tests::TemporaryFolder folder;
  for (const std::string text : {"", "max\n", "-1\n", " 1", "18446744073709551616", "\n"}) {
    EXPECT_EQ(OpenFile(folder.write("text", text)).number(), std::nullopt) << text;
  }
}

TEST(OpenFile, IsEmptyWhereItCannotBeRead) {
  const tests::TemporaryFolder folder;
  std::array<char, 4> buffer{};
  const OpenFile missing(folder / "missing");
  EXPECT_FALSE(missing.is_open());
  EXPECT_EQ(missing.text(buffer), "");
  EXPECT_EQ(missing.number(), std::nullopt);
  const OpenFile is_a_folder(folder.path());
  EXPECT_EQ(is_a_folder.text(buffer), "");
  EXPECT_EQ(is_a_folder.number(), std::nullopt);
}

TEST(OpenFile, MovesToOneOwner) {
  const tests::TemporaryFolder folder;
  OpenFile first(folder.write("counter", "5"));
  {
    const OpenFile second(std::move(first));
    EXPECT_EQ(second.number(), 5U);
    EXPECT_FALSE(first.is_open());  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  }
  EXPECT_EQ(first.number(), std::nullopt);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace cnn::bench
