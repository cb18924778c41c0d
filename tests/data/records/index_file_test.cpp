#include "data/records/index_file.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "data/records/crc32c.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

// Returns shards of 100, 16 and 0 bytes whose records are not yet known.
std::vector<Shard> unread_shards() {
  return {{.path = "a/train-0", .bytes = 100, .modified = -5, .lengths = {}},
          {.path = "a/train-1", .bytes = 16, .modified = 1, .lengths = {}},
          {.path = "a/train-2", .bytes = 0, .modified = 0, .lengths = {}}};
}

std::vector<Shard> read_shards() {
  std::vector<Shard> shards = unread_shards();
  shards[0].lengths = {30, 0, 22};  // each record takes 16 bytes more in the file
  shards[1].lengths = {0};
  return shards;
}

TEST(IndexFile, GivesTheLengthsThatWereSaved) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "index";
  ASSERT_TRUE(save_index(file, read_shards()));
  const auto loaded = load_index(file, unread_shards());
  ASSERT_TRUE(loaded.has_value());
  ASSERT_EQ(loaded->size(), 3U);
  EXPECT_THAT(loaded->at(0).lengths, ElementsAre(30, 0, 22));
  EXPECT_THAT(loaded->at(1).lengths, ElementsAre(0));
  EXPECT_THAT(loaded->at(2).lengths, IsEmpty());
  EXPECT_EQ(loaded->at(0).path, "a/train-0");
  EXPECT_THAT(folder.names(), ElementsAre("index")) << "no temporary file remains";
}

TEST(IndexFile, FollowsAFolderThatMoved) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "index";
  save_index(file, read_shards());
  std::vector<Shard> moved = unread_shards();
  for (Shard& shard : moved) {
    shard.path = fs::path("elsewhere") / shard.path.filename();
  }
  const auto loaded = load_index(file, moved);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->at(0).path, "elsewhere/train-0");
  EXPECT_EQ(loaded->at(0).lengths.size(), 3U);
}

TEST(IndexFile, IsOfNoUseForOtherShards) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "index";
  save_index(file, read_shards());
  const auto is_used = [&](const std::function<void(std::vector<Shard>&)>& change) {
    std::vector<Shard> shards = unread_shards();
    change(shards);
    return load_index(file, shards).has_value();
  };
  EXPECT_TRUE(is_used([](auto&) {}));
  EXPECT_FALSE(is_used([](auto& shards) { shards.pop_back(); }));
  EXPECT_FALSE(is_used([](auto& shards) { shards.push_back(shards.back()); }));
  EXPECT_FALSE(is_used([](auto& shards) { std::swap(shards[0], shards[1]); }));
  EXPECT_FALSE(is_used([](auto& shards) { shards[0].path = "a/train-9"; }));
  EXPECT_FALSE(is_used([](auto& shards) { shards[0].bytes += 1; }));
  EXPECT_FALSE(is_used([](auto& shards) { shards[0].modified += 1; }));
}

TEST(IndexFile, IsOfNoUseWhereItIsMissingOrNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(load_index(folder.path() / "missing", unread_shards()), std::nullopt);
  EXPECT_EQ(load_index(folder.path(), unread_shards()), std::nullopt);
  EXPECT_EQ(load_index(folder.write("empty", ""), unread_shards()), std::nullopt);
}

std::string with_index_checksum(const std::string& body) {
  return body + little_endian(crc32c(std::as_bytes(std::span(body))), 4);
}

// All checksums are correct here, as in a file that another program wrote.
TEST(IndexFile, BelievesNoNumbersThatCannotBe) {
  const TemporaryFolder folder;
  const std::string head = "cnn record index 1\n" + little_endian(1, 8);
  const std::string shard = little_endian(1, 8) + "s" + little_endian(40, 8) + little_endian(7, 8);
  const std::vector<Shard> shards{{.path = "s", .bytes = 40, .modified = 7, .lengths = {}}};
  const auto is_used = [&](const std::string& body) {
    return load_index(folder.write("index", with_index_checksum(body)), shards).has_value();
  };
  const std::string two = little_endian(2, 8) + little_endian(8, 4) + little_endian(0, 4);
  EXPECT_TRUE(is_used(head + shard + two));
  EXPECT_FALSE(is_used(head + shard + two + "x")) << "bytes behind the last shard";
  EXPECT_FALSE(
      is_used(head + shard + little_endian(2, 8) + little_endian(9, 4) + little_endian(0, 4)))
      << "records that end behind the shard";
  EXPECT_FALSE(is_used(head + shard + little_endian(1, 8) + little_endian(0xFFFFFFF8, 4)))
      << "a length that wraps in 32 bits";
  EXPECT_FALSE(is_used(head + shard + little_endian(3, 8) + std::string(12, '\0')))
      << "more records than the shard can hold";
  EXPECT_FALSE(is_used(head + shard + little_endian(~std::uint64_t{0}, 8)));
  EXPECT_FALSE(is_used(head + little_endian(~std::uint64_t{0}, 8) + "s"))
      << "a name of endless length";
  EXPECT_FALSE(is_used("cnn record index 2\n" + head.substr(19) + shard + two));
}

TEST(IndexFile, SaysThatItCannotBeWrittenAndLeavesNothing) {
  const TemporaryFolder folder;
  EXPECT_FALSE(save_index(folder.path() / "missing" / "index", read_shards()));
  fs::create_directory(folder.path() / "taken");
  EXPECT_FALSE(save_index(folder.path() / "taken", read_shards()));
  EXPECT_THAT(folder.names(), ElementsAre("taken"));
}

}  // namespace
}  // namespace cnn::data
