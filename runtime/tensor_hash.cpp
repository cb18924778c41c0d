#include "runtime/tensor_hash.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn {
namespace {

constexpr std::int64_t block_channels = 16;    // of Layout::nchw16c
constexpr std::int64_t vector_columns = 4096;  // width of the rows that a rank-1 tensor is cut into

// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// 2014): every input bit changes half of the output bits.
std::uint64_t scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ x >> 30U) * 0xBF58476D1CE4E5B9U;
  x = (x ^ x >> 27U) * 0x94D049BB133111EBU;
  return x ^ x >> 31U;
}

void extend(std::vector<std::uint32_t>& keys, std::int64_t count, std::uint64_t stream) {
  for (auto i = static_cast<std::int64_t>(keys.size()); i < count; ++i) {
    const std::uint64_t bits = scramble(stream + static_cast<std::uint64_t>(i));
    keys.push_back(static_cast<std::uint32_t>(bits >> 32U) | 1U);
  }
}

// The logical matrix that represents a tensor for hashing.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
};

Matrix matrix_of(const Shape& shape) {
  const std::int64_t elements = shape.elements();
  if (elements == 0) {
    return {};
  }
  if (shape.rank() <= 1) {
    return {divide_up(elements, vector_columns), std::min(elements, vector_columns)};
  }
  const std::int64_t rows = shape.rank() == 2 ? shape[0] : shape[0] * shape[1];
  return {rows, elements / rows};
}

std::int64_t channel_blocks(const Shape& shape) { return divide_up(shape[1], block_channels); }

bool has_channel_blocks(const TensorDesc& desc) {
  return desc.layout == Layout::nchw16c && desc.shape.rank() > 2;
}
bool has_channels_last(const TensorDesc& desc) {
  return desc.layout == Layout::nhwc && desc.shape.rank() > 2;
}

template <class Word>
std::uint64_t dot(const Word* values, const std::uint32_t* keys, std::int64_t count) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += static_cast<std::uint64_t>(values[i]) * keys[i];
  }
  return sum;
}

// The elements of one tensor as words of their size, with the keys of the matrix.
template <class Word>
class Summer {
 public:
  Summer(const TensorView& tensor, const HashKeys& keys)
      : desc_(tensor.desc),
        shape_(hashed_shape(tensor.desc)),
        matrix_(matrix_of(shape_)),
        values_(reinterpret_cast<const Word*>(tensor.data)),
        rows_(keys.rows().data()),
        columns_(keys.columns().data()) {
    check(static_cast<std::int64_t>(keys.rows().size()) >= matrix_.rows &&
              static_cast<std::int64_t>(keys.columns().size()) >= matrix_.columns,
          "hash of a tensor " + to_string(desc_) + ": its keys are not prepared");
  }

  std::uint64_t sum(std::int64_t first, std::int64_t last) const {
    if (desc_.layout != Layout::packed && has_channel_blocks(desc_)) {
      return sum_of_blocks(first, last);
    }
    if (desc_.layout != Layout::packed && has_channels_last(desc_)) {
      return sum_of_pixels(first, last);
    }
    return sum_of_rows(first, last);
  }

 private:
  // Sums contiguous rows; rows of a matrix in blocks of channels have padding.
  std::uint64_t sum_of_rows(std::int64_t first, std::int64_t last) const {
    const std::int64_t stride = desc_.layout == Layout::nchw16c && shape_.rank() == 2
                                    ? channel_blocks(shape_) * block_channels
                                    : matrix_.columns;
    if (stride == 1) {  // weights of 1 x 1 convolutions: one long loop over the rows
      return dot(values_ + first, rows_ + first, last - first) * columns_[0];
    }
    const std::int64_t elements = shape_.elements();
    std::uint64_t sum = 0;
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t count = std::min(matrix_.columns, elements - row * matrix_.columns);
      sum += dot(values_ + row * stride, columns_, count) * rows_[row];
    }
    return sum;
  }

  std::uint64_t sum_of_pixels(std::int64_t first, std::int64_t last) const {
    const std::int64_t channels = shape_[1];
    std::uint64_t sum = 0;
    for (std::int64_t pixel = first; pixel < last; ++pixel) {
      const std::uint32_t* const keys = rows_ + pixel / matrix_.columns * channels;
      sum += dot(values_ + pixel * pitch_of(desc_), keys, channels) *
             columns_[pixel % matrix_.columns];
    }
    return sum;
  }

  // Keeps 16 separate sums for the channels of a block, so that padding can be dropped at the end.
  std::uint64_t sum_of_blocks(std::int64_t first, std::int64_t last) const {
    const std::int64_t blocks = channel_blocks(shape_);
    std::uint64_t sum = 0;
    for (std::int64_t block = first; block < last; ++block) {
      const Word* values = values_ + block * matrix_.columns * block_channels;
      std::array<std::uint64_t, block_channels> sums{};
      for (std::int64_t column = 0; column < matrix_.columns; ++column) {
        const std::uint32_t key =
            columns_[column];  // two factors of 32 bits: vectors multiply them
        for (std::size_t channel = 0; channel < block_channels; ++channel) {
          sums[channel] += static_cast<std::uint64_t>(values[channel]) * key;
        }
        values += block_channels;
      }
      const std::int64_t channel = block % blocks * block_channels;
      const std::uint32_t* const keys = rows_ + block / blocks * shape_[1] + channel;
      const std::int64_t count = std::min(block_channels, shape_[1] - channel);
      for (std::int64_t i = 0; i < count; ++i) {
        sum += sums[static_cast<std::size_t>(i)] * keys[i];
      }
    }
    return sum;
  }

  const TensorDesc& desc_;
  Shape shape_;
  Matrix matrix_;
  const Word* values_;
  const std::uint32_t *rows_, *columns_;
};

std::size_t word_bytes(const TensorDesc& desc) {
  return desc.layout == Layout::packed ? 1 : size_of(desc.type);
}

}  // namespace

Shape hashed_shape(const TensorDesc& desc) {
  return desc.layout == Layout::packed ? Shape{static_cast<std::int64_t>(desc.bytes())}
                                       : desc.shape;
}

void HashKeys::prepare(const Shape& shape) {
  constexpr std::uint64_t row_stream = 0x243F6A8885A308D3U, column_stream = 0x13198A2E03707344U;
  const Matrix matrix = matrix_of(shape);
  extend(rows_, matrix.rows, row_stream);
  extend(columns_, matrix.columns, column_stream);
}

std::int64_t hash_parts(const TensorDesc& desc) {
  const Shape shape = hashed_shape(desc);
  const Matrix matrix = matrix_of(shape);
  if (matrix.rows == 0 || desc.layout == Layout::packed) {
    return matrix.rows;
  }
  return has_channel_blocks(desc)  ? shape[0] * channel_blocks(shape)
         : has_channels_last(desc) ? shape[0] * matrix.columns
                                   : matrix.rows;
}

std::uint64_t partial_hash(const TensorView& tensor, const HashKeys& keys, std::int64_t first,
                           std::int64_t last) {
  switch (word_bytes(tensor.desc)) {
    case 1:
      return Summer<std::uint8_t>(tensor, keys).sum(first, last);
    case 2:
      return Summer<std::uint16_t>(tensor, keys).sum(first, last);
    default:
      return Summer<std::uint32_t>(tensor, keys).sum(first, last);
  }
}

std::uint64_t finish_hash(const TensorDesc& desc, std::uint64_t sum) {
  const std::uint64_t kind = static_cast<std::uint64_t>(desc.type) << 56U ^
                             static_cast<std::uint64_t>(desc.shape.elements());
  return scramble(sum ^ scramble(kind));
}

std::uint64_t hash_of(const TensorView& tensor, const HashKeys& keys) {
  const std::int64_t parts = hash_parts(tensor.desc);
  return finish_hash(tensor.desc, parts == 0 ? 0 : partial_hash(tensor, keys, 0, parts));
}

std::uint64_t combine_hash(std::uint64_t hash, std::uint64_t word) {
  return scramble(hash ^ scramble(word));
}

}  // namespace cnn
