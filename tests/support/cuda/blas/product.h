#pragma once

#include <cstddef>
#include <string>

#include "tests/support/cuda/blas/objects.h"

namespace cnn::tests::emulated {

// D = epilogue(alpha op(A) op(B) + beta C) in column-major order, as the caller of cuBLASLt
// describes it.
struct Product {
  Operation operation;
  Layout a, b, c, d;
};

// Returns why the product is invalid or not emulated, or "" if it can run.
std::string why_impossible(const Product& product);

// Workspace in bytes of the emulation's only algorithm.
inline constexpr std::size_t product_workspace_bytes = 4096;

// Returns a hash of the product without its addresses, which tells for which product an algorithm
// was chosen.
std::size_t fingerprint(const Product& product);

// Returns the bytes from the matrix's first element to the end of its last.
std::size_t extent(const Layout& layout);

struct ProductMemory {
  const void *a = nullptr, *b = nullptr, *c = nullptr, *bias = nullptr;
  void* d = nullptr;
  float alpha = 1, beta = 0;
};
void compute(const Product& product, const ProductMemory& memory);

bool has_bias(const Product& product);
std::size_t bias_bytes(const Product& product);

}  // namespace cnn::tests::emulated
