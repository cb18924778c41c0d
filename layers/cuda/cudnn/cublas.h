#pragma once

#include <cstddef>
#include <cstdint>
#include <cublasLt.h>
#include <memory>

#include "runtime/cuda/handle.h"
#include "runtime/device.h"
#include "runtime/required.h"
#include "runtime/tensor.h"

namespace cnn::layers::cuda {

// Throws Error "cuBLAS cannot <doing>: <status>" unless the status is success.
void check_cublas(cublasStatus_t status, const char* doing);

// The workspace of every matrix product, in bytes. It is the same for all algorithms, because the
// algorithm is chosen on the device after memory is planned. NVIDIA recommends 32 MiB for Hopper.
inline constexpr std::size_t product_workspace = std::size_t{32} << 20U;

// A GEMM with epilogue: out = relu(a b + bias) with out [rows, columns], a [rows, inner], b [inner,
// columns] and bias [columns]; bias and ReLU are optional. All matrices are row-major. A transposed
// operand is stored with its two dimensions exchanged.
struct ProductShape {
  Required<std::int64_t> rows, columns, inner;
  bool a_transposed = false, b_transposed = false;
  Required<DataType> in, out;  // the bias has the type of out
  bool bias = false, relu = false;
  bool strict_f32 = false;  // f32 products are not rounded to TF32
  bool deterministic = true;
};

// The addresses of one run, in device memory.
struct ProductOperands {
  const std::byte *a = nullptr, *b = nullptr, *bias = nullptr;
  std::byte* out = nullptr;
  std::byte* workspace = nullptr;  // product_workspace bytes, aligned to 16
};

// A matrix product whose algorithm cuBLASLt's heuristics have chosen for the calling thread's
// device.
class Product {
 public:
  // The handle must outlive the product. Throws Error if cuBLAS has no algorithm for the shape.
  Product(cublasLtHandle_t handle, const ProductShape& shape);
  void run(Stream& stream, const ProductOperands& operands);

 private:
  using Operation = cnn::cuda::Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
  using Matrix = cnn::cuda::Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

  void choose_algorithm(bool deterministic);

  cublasLtHandle_t handle_;
  bool has_bias_;
  Operation operation_;
  Matrix a_, b_, out_;  // cuBLAS's operands: its a is our b, and its b is our a
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace cnn::layers::cuda
