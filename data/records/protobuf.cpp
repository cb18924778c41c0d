#include "data/records/protobuf.h"

#include <bit>
#include <cstring>

#include "runtime/error.h"

namespace cnn::data {
namespace {

constexpr unsigned bits_of_varint_byte = 7;

}  // namespace

std::span<const std::byte> ProtobufReader::take(std::uint64_t bytes) {
  check(bytes <= left_.size(), "a protocol buffer ends within a field");
  const std::span<const std::byte> taken = left_.first(bytes);
  left_ = left_.subspan(bytes);
  return taken;
}

std::uint64_t ProtobufReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += bits_of_varint_byte) {
    const auto byte = static_cast<std::uint64_t>(take(1)[0]);
    value |= (byte & 0x7FU) << shift;
    if ((byte & 0x80U) == 0) {
      return value;
    }
  }
  throw Error("a protocol buffer has a number of more than 64 bits");
}

std::uint64_t ProtobufReader::fixed(std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, take(bytes).data(), bytes);
  return value;
}

std::optional<ProtobufReader::Field> ProtobufReader::next() {
  if (left_.empty()) {
    return std::nullopt;
  }
  const std::uint64_t key = varint();
  Field field{.number = key >> 3U};
  check(field.number != 0, "a protocol buffer has a field without a number");
  switch (key & 7U) {
    case 0:
      field.value = varint();
      break;
    case 1:
      field.type = WireType::fixed64;
      field.value = fixed(8);
      break;
    case 2:
      field.type = WireType::bytes;
      field.bytes = take(varint());
      break;
    case 5:
      field.type = WireType::fixed32;
      field.value = fixed(4);
      break;
    default:
      throw Error("a protocol buffer has a field of an unknown wire type");
  }
  return field;
}

void ProtobufWriter::varint(std::uint64_t value) {
  while (value >= 0x80U) {
    message_.push_back(static_cast<std::byte>(value | 0x80U));
    value >>= bits_of_varint_byte;
  }
  message_.push_back(static_cast<std::byte>(value));
}

void ProtobufWriter::key(std::uint64_t number, ProtobufReader::WireType type) {
  varint(number << 3U | static_cast<std::uint64_t>(type));
}

void ProtobufWriter::varint_field(std::uint64_t number, std::int64_t value) {
  key(number, ProtobufReader::WireType::varint);
  varint(static_cast<std::uint64_t>(value));
}

void ProtobufWriter::float_field(std::uint64_t number, float value) {
  key(number, ProtobufReader::WireType::fixed32);
  append_fixed32(std::bit_cast<std::uint32_t>(value));
}

void ProtobufWriter::double_field(std::uint64_t number, double value) {
  key(number, ProtobufReader::WireType::fixed64);
  const auto bytes = std::as_bytes(std::span(&value, 1));
  message_.insert(message_.end(), bytes.begin(), bytes.end());
}

void ProtobufWriter::packed_doubles_field(std::uint64_t number, std::span<const double> values) {
  bytes_field(number, std::as_bytes(values));
}

void ProtobufWriter::bytes_field(std::uint64_t number, std::span<const std::byte> bytes) {
  key(number, ProtobufReader::WireType::bytes);
  varint(bytes.size());
  message_.insert(message_.end(), bytes.begin(), bytes.end());
}

void ProtobufWriter::bytes_field(std::uint64_t number, std::string_view text) {
  bytes_field(number, std::as_bytes(std::span(text)));
}

void ProtobufWriter::append_fixed32(std::uint32_t value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  message_.insert(message_.end(), bytes.begin(), bytes.end());
}

}  // namespace cnn::data
