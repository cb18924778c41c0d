#include "layers/cuda/cudnn/cublas.h"

#include <string>

#include "runtime/cuda/stream.h"
#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

// The alignment of all operands in bytes, which the memory plan's 64 bytes guarantee.
constexpr std::uint32_t alignment = 16;

cudaDataType_t cuda_type(DataType type) {
  switch (type) {
    case DataType::f16:
      return CUDA_R_16F;
    case DataType::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type(const ProductShape& shape) {
  const bool tf32 = shape.in == DataType::f32 && !shape.strict_f32;
  return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogue_of(const ProductShape& shape) {
  if (shape.bias) {
    return shape.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  }
  return shape.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

template <class Value>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name, const Value& value) {
  check_cublas(cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof(value)),
               "set an attribute of a product");
}

template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
         const Value& value) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value)),
               "set a preference of a product");
}

// Returns the layout of a row-major matrix. cuBLAS is column-major: a row-major [rows, columns]
// matrix is its [columns, rows].
cublasLtMatrixLayout_t layout_of(DataType type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(
      cublasLtMatrixLayoutCreate(&layout, cuda_type(type), static_cast<std::uint64_t>(columns),
                                 static_cast<std::uint64_t>(rows), columns),
      "describe a matrix");
  return layout;
}

// Returns the layout of an operand as it is stored, with exchanged dimensions if it is transposed.
cublasLtMatrixLayout_t layout_of(DataType type, std::int64_t rows, std::int64_t columns,
                                 bool transposed) {
  return transposed ? layout_of(type, columns, rows) : layout_of(type, rows, columns);
}

cublasLtMatmulDesc_t operation_of(const ProductShape& shape) {
  cublasLtMatmulDesc_t operation = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&operation, compute_type(shape), CUDA_R_32F),
               "describe a product");
  return operation;
}

}  // namespace

void check_cublas(cublasStatus_t status, const char* doing) {
  if (status != CUBLAS_STATUS_SUCCESS) {  // check() would build the text in every step
    throw Error(std::string("cuBLAS cannot ") + doing + ": " + cublasLtGetStatusString(status));
  }
}

// Computes out^T = b^T a^T in cuBLAS's column-major terms: exchanging the operands makes row-major
// matrices work without a copy.
Product::Product(cublasLtHandle_t handle, const ProductShape& s)
    : handle_(handle),
      has_bias_(s.bias),
      operation_(operation_of(s)),
      a_(layout_of(s.in, s.inner, s.columns, s.b_transposed)),
      b_(layout_of(s.in, s.rows, s.inner, s.a_transposed)),
      out_(layout_of(s.out, s.rows, s.columns)) {
  const auto transposition = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSA, transposition(s.b_transposed));
  set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSB, transposition(s.a_transposed));
  set(operation_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(s));
  if (s.bias) {
    set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cuda_type(s.out));
    // The address of the bias is not known yet, but the heuristics depend on its alignment.
    set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uintptr_t{alignment});
  }
  choose_algorithm(s.deterministic);
}

void Product::choose_algorithm(bool deterministic) {
  cublasLtMatmulPreference_t raw = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&raw), "make preferences");
  const cnn::cuda::Handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference(
      raw);
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, product_workspace);
  for (const auto name :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(raw, name, alignment);
  }
  if (deterministic) {  // split-K only with f32 partial sums in the workspace, added in order
    set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  }
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, operation_.get(), a_.get(), b_.get(), out_.get(),
                                     out_.get(), raw, 1, &result, &found);
  check_cublas(status, "find an algorithm for a matrix product");
  check(found > 0, "cuBLAS has no algorithm for a matrix product");
  algorithm_ = result.algo;
}

void Product::run(Stream& stream, const ProductOperands& o) {
  if (has_bias_) {
    set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);
  }
  const float one = 1;
  const float zero = 0;
  check_cublas(cublasLtMatmul(handle_, operation_.get(), &one, o.b, a_.get(), o.a, b_.get(), &zero,
                              o.out, out_.get(), o.out, out_.get(), &algorithm_, o.workspace,
                              product_workspace, cnn::cuda::native(stream)),
               "run a product");
}

}  // namespace cnn::layers::cuda
