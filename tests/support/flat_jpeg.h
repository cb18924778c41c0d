#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>

namespace cnn::tests {

// Encodes a baseline JPEG file of one grey value without a library: all coefficients except the
// first are 0.
class FlatJpeg {
 public:
  static std::string encode(int height, int width, int value) {
    FlatJpeg jpeg;
    jpeg.headers(height, width, 8 * (value - 128));
    jpeg.scan((height + 7) / 8 * ((width + 7) / 8), 8 * (value - 128));
    return jpeg.file_;
  }

 private:
  void bytes(std::initializer_list<int> values) {
    for (const int value : values) {
      file_ += static_cast<char>(value);
    }
  }
  static int bits_of(int coefficient) {
    int bits = 0;
    for (int left = std::abs(coefficient); left > 0; left /= 2) {
      ++bits;
    }
    return bits;
  }
  void headers(int height, int width, int coefficient) {
    bytes({0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0});  // quantisation by 1
    file_ += std::string(64, '\1');
    bytes(
        {0xFF, 0xC0, 0, 11, 8, height >> 8, height & 255, width >> 8, width & 255, 1, 1, 0x11, 0});
    // The Huffman codes of the first coefficient's bit count: 0 stands for no bits, 10 for those of
    // the value.
    bytes({0xFF, 0xC4, 0, 21, 0, 1, 1});
    file_ += std::string(14, '\0');
    bytes({0, coefficient == 0 ? 1 : bits_of(coefficient)});
    bytes({0xFF, 0xC4, 0, 20, 0x10, 1});  // code 0 ends a block
    file_ += std::string(15, '\0');
    bytes({0});
    bytes({0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0});
  }
  void scan(int blocks, int coefficient) {
    if (coefficient != 0) {
      const int count = bits_of(coefficient);
      put(2, 2);
      put(coefficient > 0 ? coefficient : coefficient + (1 << count) - 1, count);
      put(0, 1);
      --blocks;
    }
    for (int block = 0; block < blocks; ++block) {
      put(0, 2);
    }
    while (filled_ != 0) {
      put(1, 1);
    }
    bytes({0xFF, 0xD9});
  }
  void put(int value, int count) {
    for (int bit = count - 1; bit >= 0; --bit) {
      byte_ = 2 * byte_ + ((value >> bit) & 1);
      if (++filled_ == 8) {
        bytes({byte_});
        if (byte_ == 0xFF) {
          bytes({0});
        }
        byte_ = filled_ = 0;
      }
    }
  }

  std::string file_;
  int byte_ = 0, filled_ = 0;
};

}  // namespace cnn::tests
