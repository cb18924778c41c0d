#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cnn::tests {

// Writes TFRecord files of tf.train.Example like ImageNet's, without the code that reads them.
class ImageRecords {
 public:
  static std::string number(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) {
      text += static_cast<char>(value >> (8 * i));
    }
    return text;
  }
  // Returns the record of one Example.
  static std::string record(const std::string& image, int label) {
    const std::string example = field(
        1, feature("image/encoded", field(1, field(1, image))) +
               feature("image/class/label", field(3, std::string("\x08") + varint(label))) +
               edge("ymin", 0.1F) + edge("xmin", 0.1F) + edge("ymax", 0.9F) + edge("xmax", 0.9F));
    const std::string length = number(example.size(), 8);
    return length + number(masked_crc(length), 4) + example + number(masked_crc(example), 4);
  }

 private:
  static std::string varint(std::uint64_t value) {
    std::string text;
    for (; value >= 128; value /= 128) {
      text += static_cast<char>(value % 128 + 128);
    }
    return text + static_cast<char>(value);
  }
  static std::string field(int number, const std::string& bytes) {
    return varint(8 * static_cast<std::uint64_t>(number) + 2) + varint(bytes.size()) + bytes;
  }
  static std::string feature(const std::string& name, const std::string& value) {
    return field(1, field(1, name) + field(2, value));
  }
  static std::string edge(const std::string& name, float value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    return feature("image/object/bbox/" + name, field(2, field(1, std::string(bytes, 4))));
  }
  static std::uint32_t masked_crc(const std::string& bytes) {
    std::uint32_t crc = 0xFFFFFFFF;
    for (const char byte : bytes) {
      crc ^= static_cast<unsigned char>(byte);
      for (int bit = 0; bit < 8; ++bit) {
        crc = (crc >> 1U) ^ ((crc & 1U) * 0x82F63B78U);
      }
    }
    crc = ~crc;
    return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
  }
};

}  // namespace cnn::tests
