#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cublasLt.h>
#include <map>
#include <vector>

// The objects behind the handles of cuBLASLt. CUDA's headers give the names of their types.
namespace cnn::tests::emulated {

// Attributes by their number, as bytes, kept as they were set.
using Attributes = std::map<int, std::vector<std::byte>>;

struct Operation {
  cublasComputeType_t compute{};
  cudaDataType_t scale{};
  Attributes attributes;
};

struct Layout {
  cudaDataType_t type{};
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;  // elements from one column to the next
  bool operator==(const Layout&) const = default;
};

struct Preference {
  Attributes attributes;
};

// An attribute's value, or `otherwise` if it was never set.
template <class Value>
Value value_of(const Attributes& attributes, int name, Value otherwise) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) {
    return otherwise;
  }
  Value value{};
  std::copy_n(found->second.begin(), sizeof(value), reinterpret_cast<std::byte*>(&value));
  return value;
}

}  // namespace cnn::tests::emulated
