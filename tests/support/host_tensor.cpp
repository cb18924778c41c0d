#include "tests/support/host_tensor.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "runtime/divide_up.h"
#include "runtime/error.h"

// These are AddressSanitizer's functions; they are null without it.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" [[gnu::weak]] void __asan_poison_memory_region(const volatile void* from,
                                                          std::size_t bytes);
extern "C" [[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* from,
                                                            std::size_t bytes);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace cnn::tests {

namespace {

constexpr std::size_t line = 64;  // bytes of alignment and of the guard region
constexpr std::byte guard{0xA5}, unwritten{0xFF};
constexpr std::size_t part_alignment = 16;  // bytes of alignment of a view

// The storage order of a tensor: rows of channels of pixels, stored in blocks of channels.
struct Order {
  std::int64_t outer = 1, channels = 1, pixels = 1;
  std::int64_t block = 1;  // adjacent channels
  std::int64_t pitch = 1;  // elements from one block to the next

  explicit Order(const TensorDesc& desc) {
    const Shape& shape = desc.shape;
    outer = shape.rank() > 0 ? shape[0] : 1;
    channels = shape.rank() > 1 ? shape[1] : 1;
    for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
      pixels *= shape[axis];
    }
    switch (desc.layout) {
      case Layout::nchw:
        return;
      case Layout::nhwc:
        block = channels;
        pitch = desc.pitch > 0 ? desc.pitch : channels;
        return;
      case Layout::nchw16c:
        block = pitch = 16;
        return;
      case Layout::packed:
        break;
    }
    throw Error("a test cannot see into the packed tensor " + to_string(desc));
  }

  std::int64_t padded_channels() const { return round_up(channels, block); }

  // Calls visit(stored index, row-major index or -1 for a padded channel).
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::int64_t n = 0; n < outer; ++n) {
      for (std::int64_t c = 0; c < padded_channels(); ++c) {
        for (std::int64_t p = 0; p < pixels; ++p) {
          const std::int64_t blocks = padded_channels() / block;
          const std::int64_t stored = ((n * blocks + c / block) * pixels + p) * pitch + c % block;
          visit(static_cast<std::size_t>(stored),
                c < channels ? (n * channels + c) * pixels + p : -1);
        }
      }
    }
  }
};

template <class Stored, class Plain, class ToStored>
void pack_as(const TensorView& from, const TensorView& to, ToStored to_stored) {
  const auto values = from.as<Plain>();
  const auto stored = to.as<Stored>();
  Order(to.desc).for_each([&](std::size_t at, std::int64_t i) {
    stored[at] = to_stored(i < 0 ? Plain{} : values[static_cast<std::size_t>(i)]);
  });
}

template <class Plain>
bool is_number(Plain value) {
  return value == value;
}

// Returns whether all bits are one, as in a new tensor; a kernel's own NaN has other bits.
template <class Stored>
bool is_unwritten(const Stored& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == unwritten; });
}

template <class Stored, class Plain, class ToPlain>
void unpack_as(const TensorView& from, const TensorView& to, ToPlain to_plain) {
  const auto stored = from.as<Stored>();
  const auto values = to.as<Plain>();
  Order(from.desc).for_each([&](std::size_t at, std::int64_t i) {
    const Plain value = to_plain(stored[at]);
    if (i >= 0) {
      values[static_cast<std::size_t>(i)] = value;
    } else if (value != Plain{} && (is_number(value) || is_unwritten(stored[at]))) {
      throw Error("a padded channel of " + to_string(from.desc) + " is not zero");
    }
  });
}

constexpr auto bf16_to_float = [](BFloat16 value) { return to_float(value); };
constexpr auto f16_to_float = [](Float16 value) { return to_float(value); };

constexpr auto same = [](auto value) { return value; };

// Under AddressSanitizer, reads past a tensor are detected too.
void forbid(const std::byte* from, std::size_t bytes) {
  if (__asan_poison_memory_region != nullptr) {
    __asan_poison_memory_region(from, bytes);
  }
}
void allow(const std::byte* from, std::size_t bytes) {
  if (__asan_unpoison_memory_region != nullptr) {
    __asan_unpoison_memory_region(from, bytes);
  }
}

}  // namespace

HostTensor::HostTensor(TensorDesc desc) : desc_(std::move(desc)) {
  const std::size_t size = desc_.extent();
  const std::size_t shift = desc_.pitch > 0 ? part_alignment : 0;
  bytes_.assign(size + shift + 2 * line, unwritten);
  const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
  data_ = bytes_.data() + (line - address % line) % line + shift;
  std::fill_n(data_ + size, line, guard);
  forbid(bytes_.data(), static_cast<std::size_t>(data_ - bytes_.data()));
  forbid(data_ + size, line);
}

bool HostTensor::guard_is_intact() const {
  const std::byte* end = data_ + desc_.extent();
  allow(end, line);
  const bool intact = std::all_of(end, end + line, [](std::byte b) { return b == guard; });
  forbid(end, line);
  return intact;
}

bool HostTensor::gaps_are_intact() const {
  if (desc_.pitch == 0) {
    return true;
  }
  const std::size_t size = size_of(desc_.type);
  const auto pixel = static_cast<std::size_t>(desc_.shape[1]) * size;
  const auto next = static_cast<std::size_t>(desc_.pitch) * size;
  for (std::size_t at = 0; at + next < desc_.extent(); at += next) {
    if (!std::all_of(data_ + at + pixel, data_ + at + next,
                     [](std::byte b) { return b == unwritten; })) {
      return false;
    }
  }
  return true;
}

HostTensor copy_of(const TensorView& view) {
  HostTensor copy(view.desc);
  std::memcpy(copy.view().data, view.data, view.desc.extent());
  return copy;
}

void pack(const TensorView& plain_values, const TensorView& stored) {
  switch (stored.desc.type) {
    case DataType::f32:
      return pack_as<float, float>(plain_values, stored, same);
    case DataType::bf16:
      return pack_as<BFloat16, float>(plain_values, stored, to_bf16);
    case DataType::i32:
      return pack_as<std::int32_t, std::int32_t>(plain_values, stored, same);
    case DataType::u8:
      return pack_as<std::uint8_t, std::uint8_t>(plain_values, stored, same);
    case DataType::f16:
      return pack_as<Float16, float>(plain_values, stored, to_f16);
  }
  throw Error("tests do not store " + to_string(stored.desc));
}

void unpack(const TensorView& stored, const TensorView& plain_values) {
  switch (stored.desc.type) {
    case DataType::f32:
      return unpack_as<float, float>(stored, plain_values, same);
    case DataType::bf16:
      return unpack_as<BFloat16, float>(stored, plain_values, bf16_to_float);
    case DataType::i32:
      return unpack_as<std::int32_t, std::int32_t>(stored, plain_values, same);
    case DataType::u8:
      return unpack_as<std::uint8_t, std::uint8_t>(stored, plain_values, same);
    case DataType::f16:
      return unpack_as<Float16, float>(stored, plain_values, f16_to_float);
  }
  throw Error("tests do not store " + to_string(stored.desc));
}

void round_to(DataType type, const TensorView& plain_values) {
  if (type == DataType::bf16) {
    for (float& value : plain_values.as<float>()) {
      value = to_float(to_bf16(value));
    }
  } else if (type == DataType::f16) {
    for (float& value : plain_values.as<float>()) {
      value = to_float(to_f16(value));
    }
  }
}

}  // namespace cnn::tests
