#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace cnn::data {

// Reads the fields of one message in Protocol Buffers' wire format, without copies. Throws Error if
// the bytes are not a message.
class ProtobufReader {
 public:
  enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  struct Field {
    std::uint64_t number = 0;
    WireType type = WireType::varint;
    std::uint64_t value = 0;           // of varint and the fixed types
    std::span<const std::byte> bytes;  // of WireType::bytes
  };

  explicit ProtobufReader(std::span<const std::byte> message) : left_(message) {}
  std::optional<Field> next();  // nothing at the end
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t bytes);
  bool at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> take(std::uint64_t bytes);

  std::span<const std::byte> left_;
};

// Builds a message field by field.
class ProtobufWriter {
 public:
  void varint(std::uint64_t value);
  // Negative numbers take ten bytes, as the format prescribes for int64.
  void varint_field(std::uint64_t number, std::int64_t value);
  void float_field(std::uint64_t number, float value);
  void double_field(std::uint64_t number, double value);
  void packed_doubles_field(std::uint64_t number, std::span<const double> values);
  void bytes_field(std::uint64_t number, std::span<const std::byte> bytes);
  void bytes_field(std::uint64_t number, std::string_view text);
  void append_fixed32(std::uint32_t value);
  const std::vector<std::byte>& message() const { return message_; }

 private:
  void key(std::uint64_t number, ProtobufReader::WireType type);

  std::vector<std::byte> message_;
};

}  // namespace cnn::data
