#include "data/records/crc32c.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace cnn::data {
namespace {

std::span<const std::byte> as_checked_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The expected values come from RFC 3720, appendix B.4, and from the catalogue of CRCs (its check
// value).
TEST(Crc32c, HasThePublishedValues) {
  std::string rising;
  for (int i = 0; i < 32; ++i) {
    rising += static_cast<char>(i);
  }
  const std::string falling(rising.rbegin(), rising.rend());
  for (const auto& crc : {crc32c, crc32c_by_table}) {
    EXPECT_EQ(crc(as_checked_bytes(std::string(32, '\0'))), 0x8A9136AAU);
    EXPECT_EQ(crc(as_checked_bytes(std::string(32, '\xFF'))), 0x62A8AB43U);
    EXPECT_EQ(crc(as_checked_bytes(rising)), 0x46DD794EU);
    EXPECT_EQ(crc(as_checked_bytes(falling)), 0x113FDB5CU);
    EXPECT_EQ(crc(as_checked_bytes("123456789")), 0xE3069283U);
    EXPECT_EQ(crc({}), 0U);
  }
}

TEST(Crc32c, IsTheSameByInstructionAndByTable) {
  std::string text;
  for (int length = 0; length < 100; ++length) {
    EXPECT_EQ(crc32c(as_checked_bytes(text)), crc32c_by_table(as_checked_bytes(text))) << length;
    text += static_cast<char>(31 * length);
  }
}

// Long data is computed in blocks of three strands, whose results are joined.
TEST(Crc32c, IsTheSameByInstructionAndByTableForLongData) {
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    text += static_cast<char>(i * i / 7);
  }
  for (const std::size_t length : {3071U, 3072U, 3073U, 6143U, 6144U, 10007U, 20000U}) {
    const std::string_view part = std::string_view(text).substr(0, length);
    EXPECT_EQ(crc32c(as_checked_bytes(part)), crc32c_by_table(as_checked_bytes(part))) << length;
  }
}

TEST(Crc32c, DoesNotDependOnWhereTheBytesLie) {
  const std::string text = "the same bytes at any address";
  for (std::size_t shift = 0; shift < 8; ++shift) {
    const std::string moved = std::string(shift, '.') + text;
    EXPECT_EQ(crc32c(as_checked_bytes(std::string_view(moved).substr(shift))),
              crc32c(as_checked_bytes(text)));
  }
}

// The mask rotates the CRC by 15 bits and adds an offset modulo 2^32.
TEST(Crc32c, IsMaskedAsTfRecordsStoreIt) {
  EXPECT_EQ(masked(0), 0xA282EAD8U);
  EXPECT_EQ(masked(0x8000), 0xA282EAD9U);
  EXPECT_EQ(masked(1), 0xA284EAD8U);
  EXPECT_EQ(masked(0xFFFFFFFF), 0xA282EAD7U);
}

}  // namespace
}  // namespace cnn::data
