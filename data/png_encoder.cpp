#include "data/png_encoder.h"

#include <array>
#include <string_view>
#include <zlib.h>

#include "runtime/error.h"

namespace cnn::data {
namespace {

constexpr std::int64_t channels = 3;

void append_big_endian(std::vector<std::byte>& to, std::uint32_t number) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    to.push_back(static_cast<std::byte>(number >> shift));
  }
}

const Bytef* bytes_of(const std::byte* data) { return reinterpret_cast<const Bytef*>(data); }

void append_chunk(std::vector<std::byte>& to, std::string_view type,
                  std::span<const std::byte> data) {
  append_big_endian(to, static_cast<std::uint32_t>(data.size()));
  const std::size_t start = to.size();
  const auto letters = std::as_bytes(std::span(type));
  to.insert(to.end(), letters.begin(), letters.end());
  to.insert(to.end(), data.begin(), data.end());
  const uLong checksum =
      crc32(0, bytes_of(to.data() + start), static_cast<uInt>(to.size() - start));
  append_big_endian(to, static_cast<std::uint32_t>(checksum));
}

// Returns the rows, each after a byte for "no filter", deflated.
std::vector<std::byte> deflated_rows(std::int64_t height, std::int64_t width,
                                     std::span<const std::uint8_t> pixels) {
  const auto row_bytes = static_cast<std::size_t>(width * channels);
  std::vector<std::byte> rows;
  rows.reserve(static_cast<std::size_t>(height) * (row_bytes + 1));
  for (std::size_t row = 0; row < static_cast<std::size_t>(height); ++row) {
    rows.push_back(std::byte{0});
    const auto bytes = std::as_bytes(pixels.subspan(row * row_bytes, row_bytes));
    rows.insert(rows.end(), bytes.begin(), bytes.end());
  }
  uLongf bytes = compressBound(static_cast<uLong>(rows.size()));
  std::vector<std::byte> packed(bytes);
  check(compress2(reinterpret_cast<Bytef*>(packed.data()), &bytes, bytes_of(rows.data()),
                  static_cast<uLong>(rows.size()), Z_BEST_SPEED) == Z_OK,
        "zlib cannot deflate an image");
  packed.resize(bytes);
  return packed;
}

}  // namespace

std::vector<std::byte> encode_png(std::int64_t height, std::int64_t width,
                                  std::span<const std::uint8_t> pixels) {
  check(height > 0 && width > 0 &&
            pixels.size() == static_cast<std::size_t>(height * width * channels),
        "an image's pixels do not have its size");
  constexpr std::array<std::uint8_t, 8> signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  constexpr std::array<std::uint8_t, 5> colours{8, 2, 0, 0, 0};  // bits, red green blue, no options
  const auto start = std::as_bytes(std::span(signature));
  std::vector<std::byte> file(start.begin(), start.end());
  std::vector<std::byte> header;
  append_big_endian(header, static_cast<std::uint32_t>(width));
  append_big_endian(header, static_cast<std::uint32_t>(height));
  const auto form = std::as_bytes(std::span(colours));
  header.insert(header.end(), form.begin(), form.end());
  append_chunk(file, "IHDR", header);
  append_chunk(file, "IDAT", deflated_rows(height, width, pixels));
  append_chunk(file, "IEND", {});
  return file;
}

}  // namespace cnn::data
