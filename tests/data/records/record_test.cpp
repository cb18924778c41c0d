#include "data/records/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string_view>

#include "data/records/crc32c.h"
#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> as_record_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string record_file_of(std::initializer_list<std::string_view> records) {
  std::vector<std::byte> bytes;
  for (const std::string_view record : records) {
    append_record(bytes, as_record_bytes(record));
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string text_at(const std::filesystem::path& path, std::uint64_t offset, std::uint32_t bytes) {
  std::vector<std::byte> buffer;
  const auto data = read_record(InputFile(path), offset, bytes, buffer);
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

TEST(Record, HasTheBytesThatTensorFlowWrites) {
  const std::string expected(
      "\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0e"
      "abc\x6e\x57\xf1\x21",
      19);
  EXPECT_EQ(record_file_of({"abc"}), expected);
  EXPECT_EQ(masked(crc32c(as_record_bytes("123456789"))), 0xC78AB0E5U);
}

TEST(Record, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  const auto path = folder.write("a", record_file_of({"one", "", "three"}));
  const RecordLengths found = scan_records(InputFile(path));
  EXPECT_THAT(found.bytes, ElementsAre(3, 0, 5));
  EXPECT_FALSE(found.broken_at.has_value());
  EXPECT_EQ(text_at(path, 0, 3), "one");
  EXPECT_EQ(text_at(path, 35, 5), "three");
}

TEST(Record, NamesFileOffsetAndRemedyWhereDataIsBroken) {
  const TemporaryFolder folder;
  std::string file = record_file_of({"one", "two"});
  file[19 + 12] ^= 1;
  const auto path = folder.write("shard", file);
  EXPECT_EQ(text_at(path, 0, 3), "one");
  EXPECT_THAT(error_of([&] { text_at(path, 19, 3); }),
              AllOf(HasSubstr(path.string()), HasSubstr("byte 19"), HasSubstr("checksum"),
                    HasSubstr("--skip_broken_records")));
}

TEST(Record, StopsTheScanWhereAHeaderIsBroken) {
  const TemporaryFolder folder;
  std::string file = record_file_of({"one", "two", "three"});
  file[19] ^= 1;
  const RecordLengths found = scan_records(InputFile(folder.write("shard", file)));
  EXPECT_THAT(found.bytes, ElementsAre(3));
  EXPECT_EQ(found.broken_at, 19U);
  EXPECT_THAT(found.problem, HasSubstr("checksum of its length"));
}

TEST(Record, BelievesNoLengthBeyondTheEndOfTheFile) {
  const TemporaryFolder folder;
  const std::string file = record_file_of({"one", std::string(1000, 'x')});
  for (const std::size_t size : {file.size() - 1, std::size_t{19 + 12}, std::size_t{19 + 5}}) {
    const auto path = folder.write("shard", file.substr(0, size));
    const RecordLengths found = scan_records(InputFile(path));
    EXPECT_THAT(found.bytes, ElementsAre(3)) << size;
    EXPECT_EQ(found.broken_at, 19U) << size;
    EXPECT_THAT(error_of([&] { text_at(path, 19, 1000); }), HasSubstr("ends within it"));
  }
  EXPECT_THAT(
      error_of([&] { text_at(folder.write("shard", file), std::uint64_t(-1), std::uint32_t(-1)); }),
      HasSubstr("ends within it"));
}

TEST(Record, TakesAHugeLengthWithARightChecksumForDamage) {
  const TemporaryFolder folder;
  std::string file = little_endian(std::uint64_t{1} << 62, 8);
  file += little_endian(masked(crc32c(as_record_bytes(file))), 4);
  file += std::string(100, '\0');
  const RecordLengths found = scan_records(InputFile(folder.write("shard", file)));
  EXPECT_EQ(found.broken_at, 0U);
  EXPECT_THAT(found.problem, HasSubstr("more than 1 GiB"));
}

}  // namespace
}  // namespace cnn::data
