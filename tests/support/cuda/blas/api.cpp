#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "tests/support/cuda/blas/objects.h"
#include "tests/support/cuda/blas/product.h"
#include "tests/support/cuda/runtime/library_work.h"
#include "tests/support/cuda/runtime/violation.h"

// Implements the functions of cuBLASLt. The real library gives no reason for a refusal, so here it
// is a violation.

namespace cnn::tests::emulated {
namespace {

cublasStatus_t refuse(const std::string& call, const std::string& why,
                      cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE) {
  violate(call + ": " + why);
  return status;
}

cublasStatus_t set(Attributes& attributes, const std::map<int, std::size_t>& known, int name,
                   const void* value, std::size_t bytes) {
  const auto found = known.find(name);
  if (found == known.end()) {
    return refuse("cuBLASLt", "attribute " + std::to_string(name) + " is not emulated");
  }
  if (found->second != bytes) {
    return refuse("cuBLASLt", "attribute " + std::to_string(name) + " has " +
                                  std::to_string(found->second) + " bytes, not " +
                                  std::to_string(bytes));
  }
  const auto* first = static_cast<const std::byte*>(value);
  attributes[name] = {first, first + bytes};
  return CUBLAS_STATUS_SUCCESS;
}

const Operation& operation_of(cublasLtMatmulDesc_t handle) {
  return *reinterpret_cast<const Operation*>(handle);
}
const Layout& layout_of(cublasLtMatrixLayout_t handle) {
  return *reinterpret_cast<const Layout*>(handle);
}

template <class Object, class Handle>
cublasStatus_t destroy(Handle handle) {
  const std::unique_ptr<Object> object(reinterpret_cast<Object*>(handle));
  return CUBLAS_STATUS_SUCCESS;
}

constexpr std::size_t operand_alignment = 16;

}  // namespace
}  // namespace cnn::tests::emulated

namespace emulated = cnn::tests::emulated;

struct cublasLtContext {};  // NOLINT(readability-identifier-naming): the name of the headers

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = std::make_unique<cublasLtContext>().release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return emulated::destroy<cublasLtContext>(handle);
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_INVALID_VALUE";
}
std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  auto made = std::make_unique<emulated::Operation>();
  made->compute = compute;
  made->scale = scale;
  *handle = reinterpret_cast<cublasLtMatmulDesc_t>(made.release());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  return emulated::destroy<emulated::Operation>(handle);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t bytes) {
  static const std::map<int, std::size_t> known{{CUBLASLT_MATMUL_DESC_TRANSA, 4},
                                                {CUBLASLT_MATMUL_DESC_TRANSB, 4},
                                                {CUBLASLT_MATMUL_DESC_EPILOGUE, 4},
                                                {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 4},
                                                {CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8}};
  return emulated::set(reinterpret_cast<emulated::Operation*>(handle)->attributes, known, name,
                       value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* handle, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  auto made = std::make_unique<emulated::Layout>(emulated::Layout{type, rows, columns, leading});
  *handle = reinterpret_cast<cublasLtMatrixLayout_t>(made.release());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  return emulated::destroy<emulated::Layout>(handle);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* handle) {
  *handle = reinterpret_cast<cublasLtMatmulPreference_t>(
      std::make_unique<emulated::Preference>().release());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  return emulated::destroy<emulated::Preference>(handle);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t bytes) {
  static const std::map<int, std::size_t> known{{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 8},
                                                {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 4},
                                                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 4},
                                                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 4},
                                                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 4},
                                                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 4}};
  return emulated::set(reinterpret_cast<emulated::Preference*>(handle)->attributes, known, name,
                       value, bytes);
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the library's
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/,
                                              cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int request,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  const emulated::Product product{emulated::operation_of(operation), emulated::layout_of(a),
                                  emulated::layout_of(b), emulated::layout_of(c),
                                  emulated::layout_of(d)};
  *found = 0;
  if (const std::string why = why_impossible(product); !why.empty()) {
    return emulated::refuse("cublasLtMatmulAlgoGetHeuristic", why, CUBLAS_STATUS_NOT_SUPPORTED);
  }
  const auto& wishes = reinterpret_cast<const emulated::Preference*>(preference)->attributes;
  const auto workspace =
      emulated::value_of(wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{0});
  if (request < 1 || workspace < emulated::product_workspace_bytes) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  results[0] = {};
  results[0].algo.data[0] = fingerprint(product);
  results[0].workspaceSize = emulated::product_workspace_bytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

// NOLINTNEXTLINE(readability-function-size): the parameters are the library's
cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  const emulated::Product product{emulated::operation_of(operation), emulated::layout_of(a_layout),
                                  emulated::layout_of(b_layout), emulated::layout_of(c_layout),
                                  emulated::layout_of(d_layout)};
  emulated::ProductMemory memory{.a = a, .b = b, .c = c, .d = d};
  memory.bias = emulated::value_of(product.operation.attributes, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                   static_cast<const void*>(nullptr));
  std::memcpy(&memory.alpha, alpha, sizeof(float));
  std::memcpy(&memory.beta, beta, sizeof(float));
  if (algorithm == nullptr || algorithm->data[0] != fingerprint(product)) {
    return emulated::refuse("cublasLtMatmul", "the algorithm was chosen for another product");
  }
  if (workspace_bytes < emulated::product_workspace_bytes) {
    return emulated::refuse("cublasLtMatmul", "the workspace is too small");
  }
  const std::array<emulated::Operand, 6> operands{
      {{"matrix A", a, extent(product.a), emulated::operand_alignment},
       {"matrix B", b, extent(product.b), emulated::operand_alignment},
       {"matrix C", c, extent(product.c), emulated::operand_alignment},
       {"matrix D", d, extent(product.d), emulated::operand_alignment},
       {"the bias", memory.bias, bias_bytes(product), emulated::operand_alignment},
       {"the workspace", workspace, workspace_bytes, emulated::operand_alignment}}};
  if (const std::string why = why_unusable(operands, stream); !why.empty()) {
    return emulated::refuse("cublasLtMatmul", why);
  }
  const cudaError_t status = emulated::enqueue(stream, "a product of cuBLASLt", operands, [=] {
    std::memset(workspace, 0xFF, emulated::product_workspace_bytes);
    compute(product, memory);
  });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
