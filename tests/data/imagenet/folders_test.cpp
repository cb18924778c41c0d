#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "data/imagenet/source.h"
#include "data/records/record.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string file_text(const ImageSource& source, std::int64_t index,
                      std::vector<std::byte>& buffer) {
  const std::span<const std::byte> bytes = source.read(index, buffer);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ImageFolders, GiveWholeFilesWhateverTheBufferHeld) {
  const TemporaryFolder folder;
  folder.write("train/a/1.jpg", "a long file");
  folder.write("train/a/2.JPEG", "");
  folder.write("train/b/3.png", "short");
  const auto source = open_folders({.dir = folder.path().string()});
  ASSERT_EQ(source->size(), 3);
  std::vector<std::byte> buffer;
  EXPECT_EQ(file_text(*source, 2, buffer), "short");
  EXPECT_EQ(file_text(*source, 0, buffer), "a long file");
  EXPECT_EQ(file_text(*source, 1, buffer), "");
  EXPECT_EQ(file_text(*source, 2, buffer), "short");
}

TEST(ImageFolders, LabelAndNameAFileByItsFolder) {
  const TemporaryFolder folder;
  folder.write("val/a/1.jpg", "");
  const fs::path second = folder.write("val/b/1.jpg", "");
  const auto source = open_folders({.dir = folder.path().string(), .training = false});
  EXPECT_EQ(source->parse(0, {}).label, 1);
  EXPECT_EQ(source->parse(1, {}).label, 2);
  EXPECT_TRUE(source->parse(1, {}).boxes.empty());
  EXPECT_EQ(source->where(1), second.string() + ": the image");
}

// The file is sparse, because the reader checks only its size.
TEST(ImageFolders, TakeAFileOfMoreThanOneGibibyteForABrokenOne) {
  const TemporaryFolder folder;
  const fs::path huge = folder.write("train/a/1.jpg", "");
  fs::resize_file(huge, (std::uintmax_t{1} << 30U) + 1);
  const auto source = open_folders({.dir = folder.path().string()});
  std::vector<std::byte> buffer;
  EXPECT_THROW(source->read(0, buffer), BrokenRecord);
  EXPECT_THAT(
      error_of([&] { source->read(0, buffer); }),
      AllOf(HasSubstr(huge.string()), HasSubstr("1 GiB"), HasSubstr("--skip_broken_records")));
  EXPECT_TRUE(buffer.empty());
}

TEST(ImageFolders, TellALostFileFromABrokenOne) {
  const TemporaryFolder folder;
  const fs::path lost = folder.write("train/a/1.jpg", "");
  const auto source = open_folders({.dir = folder.path().string()});
  fs::remove(lost);
  std::vector<std::byte> buffer;
  try {
    source->read(0, buffer);
    FAIL() << "read a file that does not exist";
  } catch (const BrokenRecord&) {
    FAIL() << "the file would be skipped silently";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(lost.string()));
  }
}

}  // namespace
}  // namespace cnn::data
