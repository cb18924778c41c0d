#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cublasLt.h>
#include <map>
#include <vector>

// The objects behind cuBLASLt's handles, whose type names come from CUDA's headers.
namespace cnn::tests::emulated {

// The bytes of each attribute by its number, as they were set.
using Attributes = std::map<int, std::vector<std::byte>>;

struct Operation {
  cublasComputeType_t compute{};
  cudaDataType_t scale{};
  Attributes attributes;
};

struct Layout {
  cudaDataType_t type{};
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;  // elements between the starts of two columns
  bool operator==(const Layout&) const = default;
};

struct Preference {
  Attributes attributes;
};

// Returns an attribute's value, or `otherwise` if it was never set.
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
