#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cnn {

// Strong indices into the tables of a graph and a schedule: mixing them up does not compile.
enum class TensorId : std::uint32_t {};
enum class NodeId : std::uint32_t {};
enum class StepId : std::uint32_t {};

template <class Id>
constexpr std::size_t index_of(Id id) {
  return static_cast<std::size_t>(id);
}

enum class DataType : std::uint8_t { f32, f16, bf16, i32, u8 };
// nchw: row-major in the logical order (also every tensor that is no image: vectors, matrices).
// nhwc: channels innermost. nchw16c: channels in blocks of 16, the last block padded with zeros.
// packed: the weight order of one kernel, see Packing.
enum class Layout : std::uint8_t { nchw, nhwc, nchw16c, packed };

std::size_t size_of(DataType type);
std::string_view name_of(DataType type);
std::string_view name_of(Layout layout);

// Up to five dimensions; a scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr std::size_t max_rank = 5;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);     // NOLINT(google-explicit-constructor)
  explicit Shape(std::span<const std::int64_t> dims);  // throws above max_rank or below zero

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t axis) const { return dims_[axis]; }
  std::int64_t& operator[](std::size_t axis) { return dims_[axis]; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  std::int64_t elements() const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, max_rank> dims_{};
  std::size_t rank_ = 0;
};

std::string to_string(const Shape& shape);  // "[32, 64, 56, 56]"

// The memory order of weights for one kernel of one backend. Equal tags mean equal bytes in memory.
struct Packing {
  std::string_view backend;  // static storage: "onednn", ...
  std::string tag;           // describes the memory order completely
  std::size_t bytes = 0;     // with padding
  bool operator==(const Packing& other) const {
    return backend == other.backend && tag == other.tag && bytes == other.bytes;
  }
};

struct TensorDesc {
  Shape shape;  // logical, always N, C, H, W (weights O, I, H, W; matrices rows, columns)
  DataType type = DataType::f32;
  Layout layout = Layout::nchw;
  std::shared_ptr<const Packing> packing = nullptr;  // only with Layout::packed
  // Elements from one pixel to the next, if other tensors lie between; only for images in nhwc. 0:
  // dense.
  std::int64_t pitch = 0;

  std::size_t bytes() const;   // with the layout's padding, without the gaps of a pitch
  std::size_t extent() const;  // bytes from the start of the first element to the end of the last
  bool operator==(const TensorDesc& other) const;  // packings compare by value
};

std::string to_string(const TensorDesc& desc);  // "bf16[32, 64, 56, 56] nhwc", "... nhwc pitch 256"

// Returns the elements from one pixel of an nhwc image to the next.
inline std::int64_t pitch_of(const TensorDesc& image) {
  return image.pitch > 0 ? image.pitch : image.shape[1];
}

// Returns the same tensor as plain row-major f32 (i32 and u8 keep their type), for reference loops.
TensorDesc plain(const TensorDesc& desc);

// A view that never owns. `data` is device memory when the view is an operand of a kernel.
struct TensorView {
  TensorDesc desc;
  std::byte* data = nullptr;

  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data), desc.extent() / sizeof(T)};
  }
};

// Storage type of DataType::bf16: the upper half of an f32, converted with round to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;
};
BFloat16 to_bf16(float value);
float to_float(BFloat16 value);

// Storage type of DataType::f16: IEEE half precision, converted with round to nearest even;
// overflow becomes infinity, subnormal numbers stay.
struct Float16 {
  std::uint16_t bits = 0;
};
Float16 to_f16(float value);
float to_float(Float16 value);

}  // namespace cnn
