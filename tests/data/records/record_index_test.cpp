#include "data/records/record_index.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/records/index_file.h"
#include "data/records/record.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string shard_of(std::initializer_list<std::size_t> lengths) {
  std::vector<std::byte> file;
  for (const std::size_t length : lengths) {
    append_record(file, std::vector<std::byte>(length, std::byte{7}));
  }
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

class RecordIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    folder.write("train-00001-of-00002", shard_of({30}));
    folder.write("train-00000-of-00002", shard_of({10, 20}));
    folder.write("validation-00000-of-00001", shard_of({5}));
    folder.write("train.txt", "not a shard");
  }
  OpenedIndex opened(bool skip_broken = false) const {
    return open_record_index({.dir = folder.path(), .subset = "train", .skip_broken = skip_broken});
  }
  fs::path file() const { return folder.path() / ".train.record_index"; }

  TemporaryFolder folder;
};

TEST_F(RecordIndexTest, CountsRecordsThroughTheShardsInTheOrderOfTheirNames) {
  const RecordIndex index = opened().index;
  ASSERT_EQ(index.size(), 3);
  EXPECT_EQ(index[0].bytes, 10U);
  EXPECT_EQ(index[1].bytes, 20U);
  EXPECT_EQ(index[1].offset, 26U);
  EXPECT_EQ(index[2].shard, 1U);
  EXPECT_EQ(index[2].offset, 0U);
  EXPECT_EQ(index[2].bytes, 30U);
}

TEST_F(RecordIndexTest, IsKeptBesideTheShards) {
  EXPECT_TRUE(opened().was_built);
  EXPECT_TRUE(fs::exists(file()));
  const OpenedIndex again = opened();
  EXPECT_FALSE(again.was_built);
  EXPECT_EQ(again.index.size(), 3);
  EXPECT_EQ(again.index[2].bytes, 30U);
  EXPECT_THAT(again.notices, IsEmpty());
}

TEST_F(RecordIndexTest, IsBuiltAgainWhenAShardChanged) {
  opened();
  folder.write("train-00001-of-00002", shard_of({30, 40}));
  const OpenedIndex after_growth = opened();
  EXPECT_TRUE(after_growth.was_built);
  EXPECT_EQ(after_growth.index.size(), 4);
  fs::last_write_time(folder.path() / "train-00001-of-00002",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_TRUE(opened().was_built);
  fs::rename(folder.path() / "train-00001-of-00002", folder.path() / "train-00002-of-00002");
  EXPECT_TRUE(opened().was_built);
}

TEST_F(RecordIndexTest, IsBuiltAgainWhenItsFileIsDamaged) {
  opened();
  const std::string good = read_file(file());
  for (std::size_t at = 0; at < good.size(); at += 3) {
    std::string bad = good;
    bad[at] ^= 16;
    folder.write(".train.record_index", bad);
    EXPECT_TRUE(opened().was_built) << at;
    folder.write(".train.record_index", good.substr(0, at));
    EXPECT_EQ(opened().index.size(), 3) << at;
  }
}

TEST_F(RecordIndexTest, LiesInTheCacheFolderWhereItsOwnCannotBeWritten) {
  const TemporaryFolder cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  fs::create_directory(file());  // a folder that blocks the file's name
  EXPECT_TRUE(opened().was_built);
  EXPECT_THAT(cache.names(), ElementsAre("cnn_benchmarks"));
  EXPECT_FALSE(opened().was_built);
  ::unsetenv("XDG_CACHE_HOME");
}

TEST_F(RecordIndexTest, RefusesABrokenShardAndSaysHowToGoOn) {
  std::string file = shard_of({10, 20, 30});
  file[26] ^= 1;
  folder.write("train-00000-of-00002", file);
  EXPECT_THAT(error_of([&] { opened(); }),
              AllOf(HasSubstr("train-00000-of-00002"), HasSubstr("byte 26"),
                    HasSubstr("--skip_broken_records")));
  const OpenedIndex skipping = opened(true);
  EXPECT_EQ(skipping.index.size(), 2) << "the first record and the other shard's";
  EXPECT_THAT(skipping.notices, ElementsAre(HasSubstr("left out all behind byte 26 of 108")));
  EXPECT_FALSE(error_of([&] { opened(); }).empty()) << "an index with a hole is not kept";
}

// The original's pattern train-*-of-* takes these names too. A writer's unfinished file is no
// shard.
TEST_F(RecordIndexTest, FindsShardsWhoseNamesHaveAnEnding) {
  fs::rename(folder.path() / "train-00000-of-00002",
             folder.path() / "train-00000-of-00002.tfrecord");
  fs::rename(folder.path() / "train-00001-of-00002",
             folder.path() / "train-00001-of-00002.tfrecord");
  folder.write("train-00001-of-00002.tfrecord.tmp", shard_of({1}));
  const OpenedIndex index = opened();
  EXPECT_EQ(index.index.size(), 3);
  EXPECT_THAT(index.notices, IsEmpty());
}

TEST_F(RecordIndexTest, SaysThatAShardIsCompressed) {
  folder.write("train-00000-of-00002", std::string("\x1f\x8b\x08", 3) + std::string(40, 'x'));
  EXPECT_THAT(error_of([&] { opened(); }),
              AllOf(HasSubstr("train-00000-of-00002"), HasSubstr("unpack it with gunzip")));
  fs::remove(folder.path() / "train-00001-of-00002");
  EXPECT_THAT(error_of([&] { opened(true); }),
              AllOf(HasSubstr("hold no records"), HasSubstr("unpack it with gunzip")));
}

TEST_F(RecordIndexTest, SaysWhyAShardCannotBeRead) {
  fs::create_symlink("/nowhere", folder.path() / "train-00002-of-00003");
  EXPECT_THAT(error_of([&] { opened(); }),
              AllOf(HasSubstr("train-00002-of-00003"), HasSubstr("No such file or directory")));
}

TEST_F(RecordIndexTest, TellsOfMissingShards) {
  fs::remove(folder.path() / "train-00000-of-00002");
  EXPECT_THAT(opened().notices, ElementsAre(HasSubstr("has 1 of the 2 shards")));
}

TEST_F(RecordIndexTest, TellsOfEmptyShards) {
  folder.write("train-00001-of-00002", "");
  for (int run = 0; run < 2; ++run) {
    const OpenedIndex index = opened();
    EXPECT_EQ(index.index.size(), 2);
    EXPECT_THAT(index.notices, ElementsAre(HasSubstr("train-00001-of-00002 is an empty file: an "
                                                     "epoch is what the other shards hold")));
  }
  folder.write("train-00002-of-00003", "");
  EXPECT_THAT(opened().notices, ElementsAre(AllOf(HasSubstr("2 shards are empty files"),
                                                  HasSubstr("train-00001-of-00002: "))));
}

TEST(RecordIndex, RefusesAFolderWithoutShards) {
  const TemporaryFolder folder;
  const auto open = [&] { open_record_index({.dir = folder.path(), .subset = "train"}); };
  EXPECT_THAT(error_of(open), HasSubstr("there are no files train-*-of-*"));
  folder.write("train-00000-of-00001", "");
  EXPECT_THAT(error_of(open), HasSubstr("hold no records"));
  EXPECT_THAT(error_of([] { open_record_index({.dir = "/nonexistent", .subset = "train"}); }),
              HasSubstr("/nonexistent"));
}

}  // namespace
}  // namespace cnn::data
