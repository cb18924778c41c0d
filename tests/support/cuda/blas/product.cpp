#include "tests/support/cuda/blas/product.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/error.h"
#include "tests/support/cuda/runtime/values.h"

namespace cnn::tests::emulated {
namespace {

bool has_type(cudaDataType_t type) {
  return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

DataType type_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16F:
      return DataType::f16;
    case CUDA_R_16BF:
      return DataType::bf16;
    default:
      return DataType::f32;
  }
}

bool is_transposed(const Product& p, cublasLtMatmulDescAttributes_t name) {
  return value_of(p.operation.attributes, name, CUBLAS_OP_N) == CUBLAS_OP_T;
}

cublasLtEpilogue_t epilogue_of(const Product& p) {
  return value_of(p.operation.attributes, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
}

cudaDataType_t bias_type(const Product& p) {
  return value_of(p.operation.attributes, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p.d.type);
}

struct Sizes {
  std::uint64_t rows = 0, columns = 0;
};

Sizes sizes(const Layout& layout, bool transposed) {
  return transposed ? Sizes{layout.columns, layout.rows} : Sizes{layout.rows, layout.columns};
}

// Returns op(matrix) in column-major order.
std::vector<float> unpack(const Layout& layout, const void* data, bool transposed) {
  const Sizes s = sizes(layout, transposed);
  std::vector<float> values(s.rows * s.columns);
  const std::int64_t to_next_row = transposed ? layout.leading : 1;
  const std::int64_t to_next_column = transposed ? 1 : layout.leading;
  for (std::uint64_t column = 0; column < s.columns; ++column) {
    load_row(type_of(layout.type), data, static_cast<std::int64_t>(column) * to_next_column,
             to_next_row, std::span(values).subspan(column * s.rows, s.rows));
  }
  return values;
}

constexpr std::uint64_t rows_at_once = 512;

// Some rows of one column of a product. Each row sums a[k * pitch + row] * b[k] in the order of k;
// several rows at a time hide the latency of the additions.
struct ColumnPart {
  const float* a = nullptr;
  std::uint64_t pitch = 0;
  std::span<const float> b;
};
void sum_rows(const ColumnPart& part, std::span<double> sums) {
  std::ranges::fill(sums, 0);
  const float* a = part.a;
  for (const double factor : part.b) {
    for (std::size_t row = 0; row < sums.size(); ++row) {
      sums[row] += static_cast<double>(a[row]) * factor;
    }
    a += part.pitch;
  }
}

double bias_of(const Product& p, const ProductMemory& m, std::uint64_t row) {
  return has_bias(p) ? load(type_of(bias_type(p)), m.bias, static_cast<std::int64_t>(row)) : 0;
}

}  // namespace

std::string why_impossible(const Product& p) {
  const Sizes a = sizes(p.a, is_transposed(p, CUBLASLT_MATMUL_DESC_TRANSA));
  const Sizes b = sizes(p.b, is_transposed(p, CUBLASLT_MATMUL_DESC_TRANSB));
  const bool tf32 = p.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (p.operation.compute != CUBLAS_COMPUTE_32F && !tf32) {
    return "compute type " + std::to_string(p.operation.compute) + " is not emulated";
  }
  if (p.operation.scale != CUDA_R_32F) {
    return "alpha and beta are not f32";
  }
  for (const Layout& layout : {p.a, p.b, p.c, p.d}) {
    if (!has_type(layout.type)) {
      return "a matrix has type " + std::to_string(layout.type) + ", which is not emulated";
    }
    if (layout.leading < static_cast<std::int64_t>(layout.rows)) {
      return "the leading dimension " + std::to_string(layout.leading) + " is less than the " +
             std::to_string(layout.rows) + " rows";
    }
  }
  if (a.columns != b.rows || a.rows != p.d.rows || b.columns != p.d.columns || p.c != p.d) {
    return "the sizes of the matrices do not fit each other";
  }
  if (p.a.type != p.b.type || (tf32 && p.a.type != CUDA_R_32F)) {
    return "the types of the matrices do not fit each other";
  }
  const cublasLtEpilogue_t epilogue = epilogue_of(p);
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_RELU &&
      epilogue != CUBLASLT_EPILOGUE_BIAS && epilogue != CUBLASLT_EPILOGUE_RELU_BIAS) {
    return "epilogue " + std::to_string(epilogue) + " is not emulated";
  }
  return has_bias(p) && !has_type(bias_type(p)) ? "the bias has a type that is not emulated" : "";
}

std::size_t fingerprint(const Product& p) {
  std::string text;
  for (const Layout& l : {p.a, p.b, p.c, p.d}) {
    text += std::to_string(l.type) + ' ' + std::to_string(l.rows) + ' ' +
            std::to_string(l.columns) + ' ' + std::to_string(l.leading) + ' ';
  }
  text += std::to_string(p.operation.compute);
  for (const auto& [name, bytes] : p.operation.attributes) {
    if (name != CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
      text += ' ' + std::to_string(name) + ' ';
      text += std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  return std::hash<std::string>{}(text);
}

std::size_t extent(const Layout& layout) {
  return layout.columns == 0
             ? 0
             : (static_cast<std::size_t>(layout.leading) * (layout.columns - 1) + layout.rows) *
                   bytes_of(type_of(layout.type));
}

bool has_bias(const Product& p) {
  const cublasLtEpilogue_t epilogue = epilogue_of(p);
  return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

std::size_t bias_bytes(const Product& p) {
  return has_bias(p) ? p.d.rows * bytes_of(type_of(bias_type(p))) : 0;
}

void compute(const Product& p, const ProductMemory& m) {
  std::vector<float> a = unpack(p.a, m.a, is_transposed(p, CUBLASLT_MATMUL_DESC_TRANSA));
  std::vector<float> b = unpack(p.b, m.b, is_transposed(p, CUBLASLT_MATMUL_DESC_TRANSB));
  if (p.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32) {
    for (std::vector<float>* values : {&a, &b}) {
      std::ranges::transform(*values, values->begin(), to_tf32);
    }
  }
  const std::uint64_t rows = p.d.rows, inner = rows == 0 ? 0 : a.size() / rows;
  const cublasLtEpilogue_t epilogue = epilogue_of(p);
  const bool relu = epilogue == CUBLASLT_EPILOGUE_RELU || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  const DataType type = type_of(p.d.type);
  std::vector<double> sums(std::min(rows, rows_at_once));
  for (std::uint64_t column = 0; column < p.d.columns; ++column) {
    for (std::uint64_t row = 0; row < rows; ++row) {
      if (row % rows_at_once == 0) {
        sum_rows({&a[row], rows, std::span(b).subspan(column * inner, inner)},
                 std::span(sums).first(std::min(rows_at_once, rows - row)));
      }
      const auto at =
          static_cast<std::int64_t>(column) * p.d.leading + static_cast<std::int64_t>(row);
      double sum = m.alpha * sums[row % rows_at_once];
      sum += m.beta == 0 ? 0 : m.beta * load(type, m.c, at);
      sum += bias_of(p, m, row);
      store(type, m.d, at, static_cast<float>(relu && sum < 0 ? 0 : sum));
    }
  }
}

}  // namespace cnn::tests::emulated
