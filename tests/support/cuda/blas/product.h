#pragma once

#include <cstddef>
#include <string>

#include "tests/support/cuda/blas/objects.h"

namespace cnn::tests::emulated {

// D = epilogue(alpha op(A) op(B) + beta C), columns first, as cuBLASLt is asked for it.
struct Product {
  Operation operation;
  Layout a, b, c, d;
};

// Returns what of the product cannot be, or the emulation does not have; empty if nothing.
std::string why_impossible(const Product& product);

// Bytes of workspace that the one algorithm of the emulation asks for.
inline constexpr std::size_t product_workspace_bytes = 4096;

// Names the product for which an algorithm was chosen: equal for equal products, whatever the
// addresses are.
std::size_t fingerprint(const Product& product);

// Bytes from the first to behind the last element of a matrix.
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
