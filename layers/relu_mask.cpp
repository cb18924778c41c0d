#include "layers/relu_mask.h"

#include <algorithm>
#include <cstdint>

#include "layers/gate.h"
#include "layers/operands.h"
#include "runtime/divide_up.h"

namespace cnn::layers {

namespace {

struct Bit {
  std::size_t byte;
  std::uint8_t value;
};

Bit bit_of(const Shape& image, std::size_t element) {
  const Dims d = dims(image);
  const auto pixels = static_cast<std::size_t>(d.pixels());
  const auto channels = static_cast<std::size_t>(d.c);
  const std::size_t pixel = element % pixels;
  const std::size_t c = element / pixels % channels;
  const std::size_t n = element / pixels / channels;
  return {.byte = (n * divide_up(channels, 8) + c / 8) * pixels + pixel,
          .value = static_cast<std::uint8_t>(1U << (c % 8))};
}

}  // namespace

TensorDesc relu_mask_of(const Shape& image) {
  return described({image[0], divide_up(image[1], 8), image[2], image[3]}, DataType::u8);
}

void set_relu_mask(const TensorView& image, const TensorView& mask) {
  const auto values = image.as<float>();
  const auto bytes = mask.as<std::uint8_t>();
  std::ranges::fill(bytes, std::uint8_t{0});
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_open(values[i])) {
      const Bit bit = bit_of(image.desc.shape, i);
      bytes[bit.byte] = static_cast<std::uint8_t>(bytes[bit.byte] | bit.value);
    }
  }
}

bool is_gate_open(const TensorView& mask, const Shape& image, std::size_t element) {
  const Bit bit = bit_of(image, element);
  return (mask.as<std::uint8_t>()[bit.byte] & bit.value) != 0;
}

}  // namespace cnn::layers
