#include "layers/pool.h"
#include "layers/subsample.h"
#include "tests/layers/cases.h"

namespace cnn::tests {

namespace {

using layers::Padding;
using layers::PoolOptions;

struct Row {
  std::string_view name;
  Shape x;
  PoolOptions options;
  Weight weight = Weight::small;
};

std::vector<Row> rows() {
  return {
      {"2x2", {2, 17, 8, 6}, {}},
      {"2x2_odd_image", {2, 5, 9, 7}, {}},
      {"3x3_stride_2_valid", {2, 16, 13, 11}, {.kernel = 3}},
      {"3x3_stride_2_same", {2, 20, 12, 14}, {.kernel = 3, .padding = Padding::same}},
      {"3x3_stride_1_same", {2, 12, 7, 5}, {.kernel = 3, .stride = 1, .padding = Padding::same}},
      {"5x5_stride_3", {1, 3, 17, 17}, {.kernel = 5, .stride = 3}},
      {"7x7_whole_image", {2, 64, 7, 7}, {.kernel = 7, .stride = 1}},
      {"1x1_stride_2", {2, 16, 8, 8}, {.kernel = 1, .stride = 2}},
      {"resnet50_stem", {1, 64, 112, 112}, {.kernel = 3, .padding = Padding::same}, Weight::medium},
      {"inception3",
       {1, 192, 35, 35},
       {.kernel = 3, .stride = 1, .padding = Padding::same},
       Weight::medium},
  };
}

// Libraries add the gradients of overlapping windows in bf16, with up to nine roundings.
constexpr double overlapping = 0.05;

}  // namespace

std::vector<Case> pool_cases() {
  std::vector<Case> result;
  for (const Row& row : rows()) {
    result.push_back({.name = "max_pool_" + std::string(row.name),
                      .build =
                          [row](Graph& graph) {
                            return layers::max_pool(image(graph, "x", row.x), row.options);
                          },
                      .weight = row.weight,
                      .bf16_tolerance = overlapping});
    result.push_back({.name = "average_pool_" + std::string(row.name),
                      .build =
                          [row](Graph& graph) {
                            return layers::average_pool(image(graph, "x", row.x), row.options);
                          },
                      .weight = row.weight,
                      .bf16_tolerance = overlapping});
  }
  for (const Shape& shape : {Shape{2, 17, 9, 7}, Shape{2, 16, 8, 8}, Shape{1, 44, 1, 1}}) {
    for (const std::int64_t offset : {0, 1}) {
      result.push_back(
          {.name = "subsample_" + std::to_string(shape[1]) + "_from_" + std::to_string(offset),
           .build = [shape, offset](Graph& graph) {
             return layers::subsample(image(graph, "x", shape), 2, offset);
           }});
    }
  }
  result.push_back({.name = "max_pool_without_indices",
                    .build = [](Graph& graph) -> std::optional<Value> {
                      layers::max_pool(image(graph, "x", {2, 17, 9, 9}), {.kernel = 3});
                      return std::nullopt;
                    },
                    .training = false});
  for (const Shape& shape : {Shape{2, 17, 7, 5}, Shape{3, 64, 8, 8}, Shape{1, 5, 1, 1}}) {
    result.push_back(
        {.name = "spatial_mean_" + std::to_string(shape[1]), .build = [shape](Graph& graph) {
           return layers::spatial_mean(image(graph, "x", shape));
         }});
  }
  return result;
}

}  // namespace cnn::tests
