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

using testing::ElementsAre;
using testing::HasSubstr;

std::string image_shard_with_labels(const std::vector<std::int64_t>& labels) {
  std::vector<std::byte> file;
  for (const std::int64_t label : labels) {
    const std::string image(static_cast<std::size_t>(label), 'i');
    append_record(
        file, image_example_record({.encoded = std::as_bytes(std::span(image)), .label = label}));
  }
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

std::vector<std::int64_t> labels_in_shards(const ImageSource& source) {
  std::vector<std::int64_t> labels;
  std::vector<std::byte> buffer;
  for (std::int64_t i = 0; i < source.size(); ++i) {
    const ImageExample example = source.parse(i, source.read(i, buffer));
    EXPECT_EQ(static_cast<std::int64_t>(example.encoded.size()), example.label);
    labels.push_back(example.label);
  }
  return labels;
}

class ImageShards : public testing::Test {
 protected:
  void SetUp() override {
    folder.write("train-00000-of-00002", image_shard_with_labels({3, 1}));
    folder.write("train-00001-of-00002", image_shard_with_labels({4, 1, 5}));
    folder.write("validation-00000-of-00001", image_shard_with_labels({9}));
  }
  Options options(bool training = true) const {
    return {.dir = folder.path().string(), .training = training};
  }

  TemporaryFolder folder;
};

TEST_F(ImageShards, GiveTheRecordsOfTheirSubsetInOrder) {
  EXPECT_THAT(labels_in_shards(*open_shards(options())), ElementsAre(3, 1, 4, 1, 5));
  EXPECT_THAT(labels_in_shards(*open_shards(options(false))), ElementsAre(9));
}

TEST_F(ImageShards, AreFoundBySubset) {
  std::filesystem::remove(folder.path() / "validation-00000-of-00001");
  EXPECT_TRUE(has_shards(options()));
  EXPECT_FALSE(has_shards(options(false)));
}

TEST_F(ImageShards, NameTheFileAndThePlaceOfARecord) {
  const auto source = open_shards(options());
  const std::string second = (folder.path() / "train-00001-of-00002").string();
  EXPECT_EQ(source->where(2), second + ": the record at byte 0");
  EXPECT_THAT(source->where(3), HasSubstr(second + ": the record at byte "));
  EXPECT_NE(source->where(3), source->where(2));
}

TEST_F(ImageShards, TakeABlockThatEndsBehindAShardOrTheSetForReadAhead) {
  const auto source = open_shards(options());
  EXPECT_TRUE(source->likes_runs());
  for (std::int64_t first = 0; first < source->size(); ++first) {
    for (const std::int64_t count : {0, 1, 3, 1000}) {
      EXPECT_EQ(error_of([&] { source->read_ahead(first, count); }), "") << first << ' ' << count;
    }
  }
}

TEST_F(ImageShards, SumTheBytesOfTheirFiles) {
  EXPECT_EQ(open_shards(options())->bytes(),
            std::filesystem::file_size(folder.path() / "train-00000-of-00002") +
                std::filesystem::file_size(folder.path() / "train-00001-of-00002"));
}

TEST_F(ImageShards, PassOnTheNoticesOfTheirIndex) {
  EXPECT_TRUE(open_shards(options())->notices().empty());
  std::filesystem::remove(folder.path() / "train-00000-of-00002");
  EXPECT_THAT(open_shards(options())->notices(), ElementsAre(HasSubstr("1 of the 2 shards")));
}

}  // namespace
}  // namespace cnn::data
