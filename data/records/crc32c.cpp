#include "data/records/crc32c.h"

#include <array>
#include <cstring>
#include <nmmintrin.h>

namespace cnn::data {
namespace {

constexpr std::uint32_t polynomial = 0x82F63B78;  // bits reversed

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? polynomial : 0U);
    }
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> table = make_table();

// The instruction takes three cycles and starts every cycle, so three strands run side by side.
// Each has this many bytes of a block; short data has no block.
constexpr std::size_t strand = 1024;

// Returns the CRC register after `bytes` zero bytes.
constexpr std::uint32_t after_zeros(std::uint32_t crc, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    crc = (crc >> 8U) ^ table[crc & 0xFFU];
  }
  return crc;
}

// The register is linear in its bits, so that four look-ups move it past one strand.
using ShiftTable = std::array<std::array<std::uint32_t, 256>, 4>;

ShiftTable make_shift_table() {
  ShiftTable shifts{};
  for (unsigned place = 0; place < 4; ++place) {
    for (std::uint32_t bit = 1; bit < 256; bit *= 2) {
      const std::uint32_t shifted = after_zeros(bit << (8 * place), strand);
      for (std::uint32_t lower = 0; lower < bit; ++lower) {
        shifts[place][bit + lower] = shifts[place][lower] ^ shifted;
      }
    }
  }
  return shifts;
}

std::uint32_t past_strand(const ShiftTable& shifts, std::uint64_t crc) {
  return shifts[0][crc & 0xFFU] ^ shifts[1][crc >> 8U & 0xFFU] ^ shifts[2][crc >> 16U & 0xFFU] ^
         shifts[3][crc >> 24U & 0xFFU];
}

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

__attribute__((target("sse4.2"))) std::uint64_t after_block(std::uint64_t crc, const std::byte* at,
                                                            const ShiftTable& shifts) {
  std::uint64_t second = 0, third = 0;
  for (std::size_t i = 0; i < strand; i += sizeof(std::uint64_t)) {
    crc = _mm_crc32_u64(crc, word_at(at + i));
    second = _mm_crc32_u64(second, word_at(at + strand + i));
    third = _mm_crc32_u64(third, word_at(at + 2 * strand + i));
  }
  second ^= past_strand(shifts, crc);
  return third ^ past_strand(shifts, second);
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> bytes) {
  static const ShiftTable shifts = make_shift_table();
  std::uint64_t crc = 0xFFFFFFFF;
  std::size_t at = 0;
  for (; at + 3 * strand <= bytes.size(); at += 3 * strand) {
    crc = after_block(crc, bytes.data() + at, shifts);
  }
  for (; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
    crc = _mm_crc32_u64(crc, word_at(bytes.data() + at));
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (; at < bytes.size(); ++at) {
    rest = _mm_crc32_u8(rest, static_cast<unsigned char>(bytes[at]));
  }
  return ~rest;
}

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    crc = (crc >> 8U) ^ table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFFU];
  }
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? by_instruction(bytes) : crc32c_by_table(bytes);
}

}  // namespace cnn::data
