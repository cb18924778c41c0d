#include "bench/make_records/write_shards.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "data/records/image_example.h"
#include "data/records/record.h"
#include "data/records/record_index.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/support/flat_jpeg.h"

namespace cnn::records {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using tests::error_of;
using tests::FlatJpeg;
using tests::TemporaryFolder;

class WriteShards : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 10; ++i) {
      images_.write((i % 2 == 0 ? "train/cat/" : "train/dog/") + std::to_string(i) + ".JPEG",
                    FlatJpeg::encode(10 + i, 20, 10 * i));
    }
  }
  ShardJob job() const {
    return {.images = data::list_image_folder(images_.path() / "train", "", 1000),
            .output = output_.path() / "shards",
            .subset = "train",
            .shards = 3,
            .threads = 2,
            .seed = 1};
  }
  static ShardProgress write(const ShardJob& job) {
    return write_shards(job, [](const ShardProgress&) {});
  }
  // Returns the label of every record, by the bytes of its image.
  static std::map<std::string, std::int64_t> read_back(const ShardJob& job) {
    const data::RecordIndex index =
        data::open_record_index({.dir = job.output, .subset = "train"}).index;
    std::map<std::string, std::int64_t> read;
    for (std::int64_t i = 0; i < index.size(); ++i) {
      std::vector<std::byte> buffer;
      const data::InputFile file(index.shards()[index[i].shard].path);
      const data::ImageExample example = data::parse_image_example(
          data::read_record(file, index[i].offset, index[i].bytes, buffer));
      read[{reinterpret_cast<const char*>(example.encoded.data()), example.encoded.size()}] =
          example.label;
    }
    return read;
  }

  TemporaryFolder images_, output_;
};

TEST_F(WriteShards, HoldEveryImageOnceWithItsLabel) {
  const ShardProgress done = write(job());
  EXPECT_EQ(done.shards, 3);
  EXPECT_EQ(done.images, 10);
  const auto read = read_back(job());
  ASSERT_EQ(read.size(), 10U);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(read.at(FlatJpeg::encode(10 + i, 20, 10 * i)), 1 + i % 2);
  }
}

TEST_F(WriteShards, AreTheSameBytesWithAnyNumberOfThreads) {
  write(job());
  ShardJob other = job();
  other.output = output_.path() / "other";
  other.threads = 1;
  write(other);
  for (int shard = 0; shard < 3; ++shard) {
    const std::string name = shard_name("train", shard, 3);
    EXPECT_EQ(tests::read_file(job().output / name), tests::read_file(other.output / name));
  }
}

TEST_F(WriteShards, AreWrittenOnlyWhereTheyAreMissing) {
  write(job());
  const std::string whole = tests::read_file(job().output / "train-00001-of-00003");
  fs::remove(job().output / "train-00001-of-00003");
  fs::create_directories(job().output);
  {  // remains of a shard that a killed run was writing
    std::ofstream(job().output / "train-00001-of-00003.tmp") << "half";
  }
  const ShardProgress again = write(job());
  EXPECT_EQ(again.shards, 3);
  EXPECT_EQ(again.shards_before, 2);
  EXPECT_EQ(tests::read_file(job().output / "train-00001-of-00003"), whole);
  EXPECT_FALSE(fs::exists(job().output / "train-00001-of-00003.tmp"));
}

TEST_F(WriteShards, RefuseAFolderWithShardsOfOtherImages) {
  write(job());
  ShardJob other = job();
  other.shards = 2;
  EXPECT_THAT(error_of([&] { write(other); }), HasSubstr("another number of shards"));
  images_.write("train/cat/0.JPEG", FlatJpeg::encode(50, 50, 3));
  EXPECT_THAT(error_of([&] { write(job()); }), HasSubstr("other images"));
  const TemporaryFolder foreign;
  foreign.write("train-00000-of-00001", "");
  other.output = foreign.path();
  EXPECT_THAT(error_of([&] { write(other); }), HasSubstr("did not write"));
}

TEST_F(WriteShards, NameADamagedFileOrLeaveItOut) {
  images_.write("train/cat/4.JPEG", "no JPEG");
  EXPECT_THAT(error_of([&] { write(job()); }),
              AllOf(HasSubstr("train/cat/4.JPEG"), HasSubstr("--skip_broken")));
  const TemporaryFolder folder;
  ShardJob skipping = job();
  skipping.output = folder.path();
  skipping.skip_broken = true;
  const ShardProgress done = write(skipping);
  EXPECT_EQ(done.images, 9);
  EXPECT_EQ(done.skipped, 1);
  EXPECT_EQ(read_back(skipping).size(), 9U);
}

TEST_F(WriteShards, LeaveNoHalfShardWhenAnImageCannotBeRead) {
  images_.write("train/cat/4.JPEG", "no JPEG");
  EXPECT_FALSE(error_of([&] { write(job()); }).empty());
  for (const auto& entry : fs::directory_iterator(job().output)) {
    EXPECT_FALSE(entry.path().string().ends_with(".tmp")) << entry.path();
  }
  images_.write("train/cat/4.JPEG", FlatJpeg::encode(14, 20, 40));
}

}  // namespace
}  // namespace cnn::records
