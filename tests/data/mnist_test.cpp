#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

#include "data/catalog.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

Options in(const TemporaryFolder& folder, bool training = true) {
  return {.dir = folder.path().string(), .training = training};
}

std::string error_with(const std::string& images, const std::string& labels,
                       const std::string& ending = "") {
  const TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte" + ending, images);
  folder.write("train-labels-idx1-ubyte" + ending, labels);
  return error_of([&] { open(find("mnist"), in(folder)); });
}

const std::string two_images = idx({2, 28, 28}, std::string(1568, 'x'));
const std::string two_labels = idx({2}, {'\3', '\4'});

TEST(Mnist, ReadsPlainFiles) {
  const TemporaryFolder folder;
  write_mnist(folder, 12);
  const auto mnist = open(find("mnist"), in(folder));
  EXPECT_EQ(mnist->size(), 12);
  EXPECT_EQ(mnist->format(), (ImageFormat{28, 28, 1, DataType::u8}));
  EXPECT_EQ(mnist->classes(), 10);
  const ReadExample last = read_one(*mnist, 11);
  EXPECT_EQ(last.label, 1);
  EXPECT_THAT(last.image, Each(11));
}

TEST(Mnist, ReadsCompressedFilesUnderTheOtherName) {
  const TemporaryFolder folder;
  folder.write("t10k-images.idx3-ubyte.gz", gzip(two_images));
  folder.write("t10k-labels.idx1-ubyte.gz", gzip(two_labels));
  const auto mnist = open(find("mnist"), in(folder, false));
  EXPECT_EQ(mnist->size(), 2);
  EXPECT_EQ(read_one(*mnist, 1).label, 4);
  EXPECT_THAT(read_one(*mnist, 1).image, Each('x'));
}

TEST(Mnist, ReadsAFileOfSeveralCompressedStreams) {
  const TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte.gz",
               gzip(two_images.substr(0, 100)) + gzip(two_images.substr(100)));
  folder.write("train-labels-idx1-ubyte.gz", gzip(two_labels));
  EXPECT_THAT(read_one(*open(find("mnist"), in(folder)), 1).image, Each('x'));
}

// Reads the examples of the distribution's package if it is installed. A program of a few lines
// over the same files gave the expected sums.
TEST(Mnist, ReadsFashionMnist) {
  const std::string dir = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(dir)) {
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  }
  const auto mnist = open(find("mnist"), {.dir = dir, .training = false});
  ASSERT_EQ(mnist->size(), 10000);
  std::int64_t labels = 0;
  std::int64_t pixels = 0;
  for (std::int64_t i = 0; i < mnist->size(); ++i) {
    const ReadExample example = read_one(*mnist, i);
    labels += example.label;
    pixels = std::accumulate(example.image.begin(), example.image.end(), pixels);
  }
  EXPECT_EQ(labels, 45000);
  EXPECT_EQ(pixels, 573469082);
  EXPECT_EQ(read_one(*mnist, 0).label, 9);
}

TEST(Mnist, NamesTheFileThatIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { open(find("mnist"), in(folder)); }),
              AllOf(HasSubstr("train-images-idx3-ubyte.gz"), HasSubstr(folder.path().string())));
  EXPECT_THAT(error_of([&] { open(find("mnist"), {.dir = "/no/such/folder"}); }),
              HasSubstr("/no/such/folder"));
}

TEST(Mnist, RejectsDamagedFiles) {
  const std::string half = two_images.substr(0, two_images.size() / 2);
  EXPECT_THAT(error_with("", two_labels), HasSubstr("less than its header"));
  EXPECT_THAT(error_with(half, two_labels), HasSubstr("less than its header"));
  EXPECT_THAT(error_with(two_images + "x", two_labels), HasSubstr("more than its header"));
  EXPECT_THAT(error_with(two_labels, two_labels), HasSubstr("does not start as an idx file"));
  EXPECT_THAT(error_with(idx({1, 28, 27}, std::string(756, 'x')), two_labels),
              HasSubstr("not 28 x 28"));
  EXPECT_THAT(error_with(idx({0, 28, 28}, ""), idx({0}, "")), HasSubstr("no examples"));
  EXPECT_THAT(error_with(two_images, idx({3}, "\1\1\1")), HasSubstr("3 labels"));
  EXPECT_THAT(error_with(two_images, idx({2}, "\1\12")), HasSubstr("label 10 is none of 0 to 9"));
}

TEST(Mnist, RejectsALyingCountWithoutTakingThatMemory) {
  const std::string lie = idx({0xFFFFFFFF, 28, 28}, "x");  // 3 TB
  EXPECT_THAT(error_with(lie, two_labels), HasSubstr("at most 1 GiB"));
  EXPECT_THAT(error_with(gzip(lie), two_labels, ".gz"), HasSubstr("promises 4294967295 examples"));
  EXPECT_THAT(error_with(idx({1'300'000, 28, 28}, "x"), idx({1'300'000}, "x")),
              HasSubstr("less than its header"));
}

// The images are truncated, which shows only when they are unpacked. The reader compares the counts
// before that.
TEST(Mnist, ComparesTheCountsBeforeItUnpacksTheImages) {
  EXPECT_THAT(error_with(gzip(idx({1'300'000, 28, 28}, "x")), gzip(two_labels), ".gz"),
              AllOf(HasSubstr("1300000 images"), HasSubstr("2 labels")));
}

TEST(Mnist, RejectsDamagedCompressedFiles) {
  const std::string packed = gzip(two_images);
  const std::string labels = gzip(two_labels);
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 6] ^= 1;
  EXPECT_THAT(error_with("", labels, ".gz"), HasSubstr("cut off"));
  EXPECT_THAT(error_with(two_images, labels, ".gz"), HasSubstr("damaged"));
  EXPECT_THAT(error_with(packed.substr(0, packed.size() - 1), labels, ".gz"), HasSubstr("cut off"));
  EXPECT_THAT(error_with(wrong_sum, labels, ".gz"), HasSubstr("damaged"));
  EXPECT_THAT(error_with(packed + "garbage", labels, ".gz"), HasSubstr("damaged"));
}

TEST(Mnist, UnpacksNoMoreOfABombThanItsHeaderPromises) {
  const std::string bomb = gzip(two_images + std::string(8'000'000, '\0'));
  EXPECT_THAT(error_with(bomb, gzip(two_labels), ".gz"), HasSubstr("more than its header"));
}

TEST(Mnist, RejectsAFolderInPlaceOfAFile) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "train-images-idx3-ubyte");
  folder.write("train-labels-idx1-ubyte", two_labels);
  EXPECT_THAT(error_of([&] { open(find("mnist"), in(folder)); }), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace cnn::data
