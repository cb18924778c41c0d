#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cnn::data {

// CRC-32C (Castagnoli polynomial), with the processor's instruction where it has one.
std::uint32_t crc32c(std::span<const std::byte> bytes);

// The same by table, for processors without the instruction.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

// TFRecord files store checksums rotated and offset, so that the checksum of data which contains
// checksums stays meaningful.
constexpr std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
}

}  // namespace cnn::data
