// Cases of ops that occur only in graphs that already contain their gradients, so none of them is
// differentiated.
#include <limits>

#include "layers/fused_conv.h"
#include "layers/fused_norm.h"
#include "layers/operands.h"
#include "tests/layers/cases.h"

namespace cnn::tests {

namespace {

using layers::ScaleBias;
using layers::Window;

Value vector(Graph& graph, std::string name, std::int64_t size) {
  return graph.parameter(std::move(name), layers::described({size}, DataType::f32), {});
}

// Returns the statistics of x: mean, variance, r, a and b. The types of a and b are those that
// convolutions load.
std::vector<Value> statistics(Graph& graph, Value x, const std::string& prefix, DataType affine) {
  const Shape shape = x.desc().shape;  // a copy, because adding nodes moves the graph's tensors
  const std::vector<Value> sums = emit_all(layers::ChannelSums(), std::vector<Value>{x});
  const std::int64_t count = shape.elements() / shape[1];
  return emit_all(layers::FinishStatistics(static_cast<double>(count), 1e-3, affine),
                  std::vector<Value>{sums[0], sums[1], vector(graph, prefix + "gamma", shape[1]),
                                     vector(graph, prefix + "beta", shape[1])});
}

std::string text_of(const Shape& shape) {
  return std::to_string(shape[1]) + "_" + std::to_string(shape[2]) + "x" + std::to_string(shape[3]);
}

struct ConvRow {
  Shape x, w;
  Window window;
  Weight weight = Weight::small;
};

std::vector<ConvRow> conv_rows() {
  const Window same3{
      .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};
  Window halving3 = same3;
  halving3.stride_h = halving3.stride_w = 2;
  const Window halving1{.stride_h = 2, .stride_w = 2};
  const Window flat{.kernel_h = 1, .kernel_w = 7, .pad_left = 3, .pad_right = 3};
  return {{{2, 8, 5, 7}, {16, 8, 1, 1}, {}},
          {{2, 16, 6, 5}, {8, 16, 3, 3}, same3},
          {{3, 8, 7, 6}, {8, 8, 3, 3}, halving3},
          {{2, 24, 6, 6}, {8, 24, 1, 1}, halving1},
          {{2, 8, 5, 9}, {16, 8, 1, 7}, flat},
          {{2, 64, 28, 28}, {64, 64, 3, 3}, same3, Weight::heavy}};
}

Value weights(Graph& graph, const Shape& shape) {
  return graph.parameter("w", layers::described(shape, DataType::f32), {});
}

Case conv_case(const ConvRow& row, bool prologue, bool statistics_too) {
  const auto build = [=](Graph& graph) -> std::optional<Value> {
    const Value x = image(graph, "x", row.x);
    std::vector<Value> in{x, weights(graph, row.w)};
    if (prologue) {
      const std::vector<Value> norm = statistics(graph, x, "", x.desc().type);
      in.insert(in.end(), {norm[3], norm[4]});
    }
    emit_all(layers::FusedConv(
                 {.window = row.window, .prologue = prologue, .statistics = statistics_too}),
             in);
    return std::nullopt;
  };
  std::string name = "fused_conv_" + text_of(row.x) + "_to_" + text_of(row.w);
  name += row.window.stride_h > 1 ? "_halving" : "";
  name += prologue ? "_prologue" : "";
  name += statistics_too ? "_statistics" : "";
  return {.name = name, .build = build, .weight = row.weight, .tolerance = 1e-4};
}

Case backward_case(const ConvRow& row) {
  const auto build = [=](Graph& graph) -> std::optional<Value> {
    const Value x = image(graph, "x", row.x);
    const std::vector<Value> norm = statistics(graph, x, "", x.desc().type);
    const Window& window = row.window;
    const Value dy = image(
        graph, "dy", {row.x[0], row.w[0], window.output_h(row.x[2]), window.output_w(row.x[3])});
    emit(layers::FusedConvBackwardWeights(window, row.w), {x, norm[3], norm[4], dy});
    const std::vector<Value> out =
        emit_all(layers::ConvBackwardDataNorm(window),
                 std::vector<Value>{dy, weights(graph, row.w), x, norm[0], norm[2],
                                    vector(graph, "next_gamma", row.x[1]),
                                    vector(graph, "next_beta", row.x[1])});
    emit_all(layers::NormBackwardEnd(),
             std::vector<Value>{out[0], x, out[1], out[2], norm[0], norm[2],
                                vector(graph, "gamma_of_end", row.x[1])});
    return std::nullopt;
  };
  std::string name = "fused_conv_backward_" + text_of(row.x) + "_to_" + text_of(row.w);
  name += row.window.stride_h > 1 ? "_halving" : "";
  return {.name = name, .build = build, .weight = row.weight, .tolerance = 1e-4};
}

Case scale_bias_case(const Shape& shape, const ScaleBias& op, bool narrow) {
  const ScaleBias::Residual residual = op.residual;
  const auto build = [=](Graph& graph) -> std::optional<Value> {
    const Value x = image(graph, "x", shape);
    const DataType type = narrow ? x.desc().type : DataType::f32;
    const std::vector<Value> norm = statistics(graph, x, "", type);
    std::vector<Value> in{x, norm[3], norm[4]};
    if (residual != ScaleBias::Residual::none) {
      const Value other = image(graph, "other", shape);
      in.push_back(other);
      if (residual == ScaleBias::Residual::normalised) {
        const std::vector<Value> second = statistics(graph, other, "other_", type);
        in.insert(in.end(), {second[3], second[4]});
      }
    }
    emit_all(op, in);
    return std::nullopt;
  };
  constexpr std::string_view rests[] = {"", "_image", "_normalised"};
  std::string name = "scale_bias_" + text_of(shape);
  name += rests[static_cast<std::size_t>(residual)];
  name += op.relu ? "_relu" : "";
  name += narrow ? "_narrow" : "";
  name += op.mask ? "_mask" : "";
  name += op.limit < std::numeric_limits<float>::infinity() ? "_limit" : "";
  return {.name = name, .build = build};
}

Case end_case(const Shape& shape) {
  const auto build = [=](Graph& graph) -> std::optional<Value> {
    std::vector<Value> in{image(graph, "g", shape), image(graph, "x", shape)};
    for (const char* name : {"sum_gx", "sum_g", "mean", "r", "gamma"}) {
      in.push_back(vector(graph, name, shape[1]));
    }
    emit_all(layers::NormBackwardEnd(), in);
    return std::nullopt;
  };
  return {.name = "norm_backward_end_" + text_of(shape), .build = build};
}

}  // namespace

std::vector<Case> fused_cases() {
  std::vector<Case> result;
  for (const ConvRow& row : conv_rows()) {
    result.push_back(conv_case(row, false, true));
    result.push_back(conv_case(row, true, true));
    result.push_back(backward_case(row));
  }
  result.push_back(conv_case(conv_rows().front(), true, false));
  result.push_back(conv_case(conv_rows().front(), false, false));
  for (const bool relu : {false, true}) {
    for (const auto residual :
         {ScaleBias::Residual::none, ScaleBias::Residual::image, ScaleBias::Residual::normalised}) {
      result.push_back(scale_bias_case({3, 17, 5, 7}, ScaleBias(relu, residual), false));
      result.push_back(scale_bias_case({2, 64, 9, 9}, ScaleBias(relu, residual), true));
    }
  }
  for (const auto residual : {ScaleBias::Residual::image, ScaleBias::Residual::normalised}) {
    result.push_back(scale_bias_case({3, 17, 5, 7}, ScaleBias(true, residual, true), false));
    result.push_back(scale_bias_case({2, 64, 9, 9}, ScaleBias(true, residual, true), true));
  }
  result.push_back(scale_bias_case({3, 17, 5, 7},
                                   ScaleBias(true, ScaleBias::Residual::none, false, 0.5F), true));
  for (const Shape& shape : {Shape{3, 17, 5, 7}, Shape{2, 64, 9, 9}, Shape{2, 3, 4, 5}}) {
    result.push_back(end_case(shape));
  }
  return result;
}

}  // namespace cnn::tests
