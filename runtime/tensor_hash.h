#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/tensor.h"

namespace cnn {

// A 64-bit hash of the values of a tensor, to compare runs bit by bit. It depends on the type, the
// number of elements, and the bits and logical place of each element; it ignores the layout,
// padding and the gaps of a pitch.
//
// It is multilinear hashing (Carter and Wegman, Universal Classes of Hash Functions, 1979): the sum
// over all elements of bits x key, modulo 2^64. The key of element [n, c, h, w] is the product of
// an odd 32-bit key of its row (n, c) and one of its column (h, w). A sum has no order, so each
// layout is read in the order of its memory, by any number of threads, with one result. Since keys
// are odd, a change of a single element always changes the sum.

// The keys of rows and columns; const while hashes are computed.
class HashKeys {
 public:
  // Makes the keys that a tensor of this shape needs.
  void prepare(const Shape& shape);

  std::span<const std::uint32_t> rows() const { return rows_; }
  std::span<const std::uint32_t> columns() const { return columns_; }

 private:
  std::vector<std::uint32_t> rows_, columns_;
};

// Returns the number of independent parts of a tensor's sum: 0 for a tensor without elements.
std::int64_t hash_parts(const TensorDesc& desc);
// Returns the sum over parts [first, last). The keys must be prepared for the tensor's shape. A
// packed tensor, whose order only its kernels know, counts as a vector of bytes.
std::uint64_t partial_hash(const TensorView& tensor, const HashKeys& keys, std::int64_t first,
                           std::int64_t last);
// Returns the hash for the sum over all parts.
std::uint64_t finish_hash(const TensorDesc& desc, std::uint64_t sum);

// Computes the whole hash on the calling thread.
std::uint64_t hash_of(const TensorView& tensor, const HashKeys& keys);

// Returns the shape that prepare() needs: the tensor's own, or for a packed tensor its bytes.
Shape hashed_shape(const TensorDesc& desc);

// Mixes one more word into a hash that depends on the order of its words.
std::uint64_t combine_hash(std::uint64_t hash, std::uint64_t word);

}  // namespace cnn
