#include "layers/dense.h"

#include <memory>
#include <optional>
#include <utility>

#include "layers/cuda/conv_parts.h"
#include "layers/cuda/cudnn/cublas.h"
#include "layers/cuda/cudnn/library_rows.h"
#include "layers/device_layout.h"

namespace cnn::layers::cuda {
namespace {

bool is_product_type(DataType type) {
  return type == DataType::f32 || type == DataType::f16 || type == DataType::bf16;
}

TensorDesc matrix(const Shape& shape, DataType type) {
  TensorDesc desc{.shape = shape, .type = type};
  require_indexable(desc);
  return desc;
}

// A dense layer's node as a matrix product of its first two operands; the bias is the third.
struct DensePlan {
  KernelSpec spec{};
  ProductShape product;
  bool bias_gradient = false;  // out[1] gets the column sums of in[1]
};

std::optional<DensePlan> plan_of(const Dense& op, const Signature& request) {
  const DataType type = request.in[0].type;
  if (!is_product_type(type)) {
    return std::nullopt;
  }
  const Shape &x = request.in[0].shape, &w = request.in[1].shape;
  DensePlan plan{.product = {.rows = x[0],
                             .columns = w[1],
                             .inner = w[0],
                             .in = type,
                             .out = type,
                             .bias = op.attributes.bias,
                             .relu = op.attributes.relu}};
  plan.spec.in = {matrix(x, type), matrix(w, type)};
  if (op.attributes.bias) {
    plan.spec.in.push_back(matrix(request.in[2].shape, type));
  }
  plan.spec.out = {matrix(request.out[0].shape, type)};
  plan.spec.workspace = product_workspace;
  return plan;
}

// Plans dx [N, K] = dy [N, M] w [K, M]^T.
std::optional<DensePlan> plan_of(const DenseBackwardData& /*op*/, const Signature& request) {
  const DataType type = request.in[0].type;
  if (!is_product_type(type)) {
    return std::nullopt;
  }
  const Shape &dy = request.in[0].shape, &w = request.in[1].shape;
  DensePlan plan{.product = {.rows = dy[0],
                             .columns = w[0],
                             .inner = w[1],
                             .b_transposed = true,
                             .in = type,
                             .out = type}};
  plan.spec.in = {matrix(dy, type), matrix(w, type)};
  plan.spec.out = {matrix(request.out[0].shape, type)};
  plan.spec.workspace = product_workspace;
  return plan;
}

// Plans dw [K, M] = x [N, K]^T dy [N, M], which is f32 for operands of any type.
std::optional<DensePlan> plan_of(const DenseBackwardWeights& op, const Signature& request) {
  const DataType type = request.in[0].type;
  if (!is_product_type(type)) {
    return std::nullopt;
  }
  const Shape &x = request.in[0].shape, &dy = request.in[1].shape;
  DensePlan plan{.product = {.rows = x[1],
                             .columns = dy[1],
                             .inner = x[0],
                             .a_transposed = true,
                             .in = type,
                             .out = DataType::f32}};
  plan.spec.in = {matrix(x, type), matrix(dy, type)};
  plan.spec.out = {matrix(request.out[0].shape, DataType::f32)};
  plan.spec.workspace = product_workspace;
  if (op.attributes.bias) {
    plan.bias_gradient = true;
    plan.spec.out.push_back(matrix(request.out[1].shape, DataType::f32));
    plan.spec.workspace += sum_rows_workspace(dy[0], static_cast<int>(dy[1]));
  }
  return plan;
}

class DenseKernel final : public Kernel {
 public:
  DenseKernel(DensePlan plan, std::shared_ptr<Libraries> libraries)
      : libraries_(std::move(libraries)),
        plan_(std::move(plan)),
        product_(libraries_->cublas(), plan_.product) {}

  void run(Stream& stream, const Operands& operands) override {
    std::byte* const workspace = operands.workspace.data();
    product_.run(stream, {.a = operands.in[0].data,
                          .b = operands.in[1].data,
                          .bias = plan_.product.bias ? operands.in[2].data : nullptr,
                          .out = operands.out[0].data,
                          .workspace = workspace});
    if (plan_.bias_gradient) {
      const TensorView& dy = operands.in[1];
      sum_rows(stream, {.from = dy.data,
                        .type = dy.desc.type,
                        .rows = dy.desc.shape[0],
                        .columns = static_cast<int>(dy.desc.shape[1]),
                        .pitch = dy.desc.shape[1],
                        .sums = reinterpret_cast<float*>(operands.out[1].data),
                        .partial = reinterpret_cast<float*>(workspace + product_workspace)});
    }
  }

 private:
  std::shared_ptr<Libraries> libraries_;
  DensePlan plan_;
  Product product_;
};

template <class Op>
void add_row(KernelTable& table, const std::shared_ptr<Libraries>& libraries) {
  table.add<Op>(
      [](const Op& op, const Signature& request) -> std::optional<KernelSpec> {
        std::optional<DensePlan> plan = plan_of(op, request);
        return plan ? std::optional(std::move(plan->spec)) : std::nullopt;
      },
      [libraries](const Op& op, const Signature& signature) -> std::unique_ptr<Kernel> {
        std::optional<DensePlan> plan = plan_of(op, signature);
        if (!plan) {
          return nullptr;
        }
        plan->product.strict_f32 = libraries->options().strict_f32;
        plan->product.deterministic = libraries->options().deterministic;
        return std::make_unique<DenseKernel>(*std::move(plan), libraries);
      },
      Provider::cublas);
}

}  // namespace

void add_dense_rows(KernelTable& table, const std::shared_ptr<Libraries>& libraries) {
  add_row<Dense>(table, libraries);
  add_row<DenseBackwardData>(table, libraries);
  add_row<DenseBackwardWeights>(table, libraries);
}

}  // namespace cnn::layers::cuda
