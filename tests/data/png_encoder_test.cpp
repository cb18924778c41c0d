#include "data/png_encoder.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <zlib.h>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::HasSubstr;

struct PngChunk {
  std::string type, data;
};

std::uint32_t png_number(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char byte : bytes.substr(0, 4)) {
    number = number << 8U | static_cast<unsigned char>(byte);
  }
  return number;
}

// Divides a file into its chunks and checks the CRC of each.
std::vector<PngChunk> png_chunks(std::span<const std::byte> bytes) {
  std::string_view left(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(left.substr(0, 8), "\x89PNG\r\n\x1A\n");
  left.remove_prefix(8);
  std::vector<PngChunk> chunks;
  while (left.size() >= 12) {
    const std::uint32_t length = png_number(left);
    EXPECT_LE(length, left.size() - 12);
    const std::string_view checked = left.substr(4, length + 4);
    EXPECT_EQ(png_number(left.substr(8 + length)),
              crc32(0, reinterpret_cast<const Bytef*>(checked.data()), uInt{length} + 4));
    chunks.push_back({std::string(checked.substr(0, 4)), std::string(checked.substr(4))});
    left.remove_prefix(12 + length);
  }
  EXPECT_EQ(left, "");
  return chunks;
}

std::string inflated_png_rows(const std::string& packed, std::size_t bytes) {
  std::string rows(bytes + 1, '\0');
  uLongf size = rows.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  return rows.substr(0, size);
}

TEST(EncodePng, WritesTheRowsOfAnRgbImage) {
  const std::vector<std::uint8_t> pixels{1,  2,  3,  4,  5,  6,   7, 8, 9,
                                         10, 11, 12, 13, 14, 255, 0, 0, 7};
  const std::vector<PngChunk> chunks = png_chunks(encode_png(3, 2, pixels));
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[0].type, "IHDR");
  EXPECT_EQ(chunks[0].data, std::string("\0\0\0\2\0\0\0\3\x08\2\0\0\0", 13)) << "width, height";
  EXPECT_EQ(chunks[1].type, "IDAT");
  EXPECT_EQ(inflated_png_rows(chunks[1].data, 21),
            std::string("\0\1\2\3\4\5\6\0\7\x08\x09\x0A\x0B\x0C\0\x0D\x0E\xFF\0\0\7", 21));
  EXPECT_EQ(chunks[2].type, "IEND");
  EXPECT_EQ(chunks[2].data, "");
}

TEST(EncodePng, WritesSizesOfMoreThanOneByte) {
  const std::vector<std::uint8_t> pixels(std::size_t{300} * 260 * 3, 9);
  const std::size_t bytes = std::size_t{300} * (260 * 3 + 1);
  const std::vector<PngChunk> chunks = png_chunks(encode_png(300, 260, pixels));
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(png_number(chunks[0].data), 260U);
  EXPECT_EQ(png_number(std::string_view(chunks[0].data).substr(4)), 300U);
  EXPECT_EQ(inflated_png_rows(chunks[1].data, bytes).size(), bytes);
}

TEST(EncodePng, RefusesPixelsOfAnotherSize) {
  const std::vector<std::uint8_t> pixels(12);
  for (const auto& [height, width] : {std::pair{2, 1}, {2, 3}, {0, 2}, {2, 0}, {-2, -2}}) {
    EXPECT_THAT(error_of([&, h = height, w = width] { encode_png(h, w, pixels); }),
                HasSubstr("do not have its size"));
  }
}

}  // namespace
}  // namespace cnn::data
