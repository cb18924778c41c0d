#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cnn::data {

// Returns CRC-32C (Castagnoli polynomial), by the processor's instruction if available.
std::uint32_t crc32c(std::span<const std::byte> bytes);

// Returns CRC-32C by a table, for processors without the instruction.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

// Returns the stored form of a checksum: TFRecord files rotate and offset it, so that checksums of
// data with embedded checksums stay meaningful.
constexpr std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
}

}  // namespace cnn::data
