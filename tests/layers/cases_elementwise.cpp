#include <algorithm>
#include <iterator>

#include "layers/activation.h"
#include "layers/batch_slice.h"
#include "layers/column_slice.h"
#include "layers/concat.h"
#include "layers/drop_path.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/lrn.h"
#include "layers/operands.h"
#include "layers/row_slice.h"
#include "tests/layers/cases.h"

namespace cnn::tests {

namespace {

// Returns a case that applies a function to one image.
Case unary(std::string name, const Shape& shape, const std::function<Value(Value)>& function) {
  return {.name = std::move(name),
          .build = [=](Graph& graph) { return function(image(graph, "x", shape)); }};
}

// Returns a case that adds `count` images of one shape.
Case join(std::string name, std::size_t count, bool with_relu) {
  return {.name = std::move(name), .build = [=](Graph& graph) {
            std::vector<Value> parts;
            parts.reserve(count);
            for (std::size_t i = 0; i < count; ++i) {
              parts.push_back(image(graph, "x" + std::to_string(i), {2, 17, 5, 3}));
            }
            return emit_all(layers::Add(with_relu), parts).front();
          }};
}

Case concat_of(std::string name, const std::vector<std::int64_t>& channels) {
  return {.name = std::move(name), .build = [=](Graph& graph) {
            std::vector<Value> parts;
            parts.reserve(channels.size());
            for (const std::int64_t count : channels) {
              parts.push_back(image(graph, "x" + std::to_string(parts.size()), {2, count, 3, 5}));
            }
            return layers::concat(parts);
          }};
}

// Returns a case that concatenates batches with these numbers of examples; an example is an image
// or a row.
Case batches_of(std::string name, const std::vector<std::int64_t>& examples, Shape example) {
  return {.name = std::move(name), .build = [=](Graph& graph) {
            std::vector<Value> parts;
            parts.reserve(examples.size());
            for (const std::int64_t count : examples) {
              Shape shape = example;
              shape[0] = count;
              parts.push_back(image(graph, "x" + std::to_string(parts.size()), shape));
            }
            return layers::concat_batch(parts);
          }};
}

std::optional<Value> slices(Graph& graph) {
  const Value x = image(graph, "x", {5, 17, 3, 7});
  layers::slice_batch(x, 0, 2);
  layers::slice_batch(x, 2, 3);
  layers::slice_batch(image(graph, "rows", {4, 33}), 1, 2);
  layers::slice_batch(graph.input("pixels", layers::described({3, 3, 5, 5}, DataType::u8)), 1, 1);
  layers::slice_batch(graph.input("labels", layers::described({6}, DataType::i32)), 2, 4);
  return std::nullopt;
}

// Rows of images in any type; the gradient of overlapping rows adds up.
Value rows_of(Value x) {
  const std::int64_t height = x.desc().shape[2];
  const Value parts[] = {layers::slice_rows(x, 0, 2), layers::slice_rows(x, 1, height - 1)};
  return layers::concat_rows(parts);
}

std::optional<Value> rows_of_pixels(Graph& graph) {
  const auto pixels = layers::described({3, 3, 5, 5}, DataType::u8);
  layers::slice_rows(graph.input("pixels", pixels), 1, 3);
  return std::nullopt;
}

// Columns of a matrix; their widths are odd, so that rows begin at odd addresses.
std::optional<Value> columns(Graph& graph) {
  const Value x = image(graph, "x", {5, 37});
  const Value wide = image(graph, "wide", {5, 12});
  layers::slice_columns(x, 0, 8);
  layers::slice_columns(x, 8, 29);
  layers::concat_columns(std::vector{wide, x, wide});
  return std::nullopt;
}

std::optional<Value> normalise(Graph& graph, DataType from) {
  const Value x = graph.input("pixels", layers::described({2, 3, 5, 7}, from));
  emit(layers::Normalise(1 / 127.5F, -1, graph.traits().compute), {x});
  return std::nullopt;
}

// Cases that cut tensors into slices and join them.
std::vector<Case> slice_cases(const Shape& odd) {
  return {
      concat_of("concat_blocks_of_16", {16, 32, 16}),
      concat_of("concat_odd", {3, 17, 1, 20}),
      concat_of("concat_of_one", {12}),
      concat_of("concat_densenet", {24, 12}),
      concat_of("concat_of_70", std::vector<std::int64_t>(70, 1)),
      batches_of("concat_batch_of_images", {2, 1, 3}, {0, 17, 3, 5}),
      batches_of("concat_batch_of_one", {3}, {0, 16, 4, 4}),
      batches_of("concat_batch_of_rows", {1, 4, 2}, {0, 33}),
      {.name = "slice_batch", .build = slices},
      {.name = "slice_and_concat_columns", .build = columns},
      unary("slice_and_concat_rows", odd, rows_of),
      unary("slice_and_concat_rows_of_one_channel", {1, 1, 3, 1}, rows_of),
      unary("slice_and_concat_rows_of_a_block", {2, 16, 4, 5}, rows_of),
      {.name = "slice_rows_of_pixels", .build = rows_of_pixels},
  };
}

}  // namespace

std::vector<Case> elementwise_cases() {
  const Shape odd{2, 17, 5, 7};
  std::vector<Case> cases{
      unary("relu", odd, layers::relu),
      unary("relu_of_100_channels", {3, 100, 3, 3}, layers::relu),
      unary("relu_of_a_matrix", {5, 33}, layers::relu),
      unary("relu6", odd, [](Value x) { return layers::relu6(layers::scale(x, 9)); }),
      unary("scale", odd, [](Value x) { return layers::scale(x, -0.375F); }),
      unary("add_to_itself", odd, [](Value x) { return layers::add(x, x); }),
      join("add_2", 2, false),
      join("add_3", 3, false),
      join("add_5_relu", 5, true),
      join("add_20", 20, false),
      unary("convert_to_f32", odd,
            [](Value x) { return emit(layers::Convert(DataType::f32), {x}); }),
      unary("convert_to_bf16_and_back", odd,
            [](Value x) {
              return layers::convert(layers::convert(x, DataType::bf16), DataType::f32);
            }),
      {.name = "fill",
       .build = [](Graph& graph) -> std::optional<Value> {
         layers::fill(graph, {3, 7}, 1.5F);
         layers::fill(graph, {}, -2.0F);
         return std::nullopt;
       }},
      {.name = "normalise_u8",
       .build = [](Graph& graph) { return normalise(graph, DataType::u8); }},
      {.name = "normalise_f32",
       .build = [](Graph& graph) { return normalise(graph, DataType::f32); }},
      unary("pad_channels_resnet20", {2, 16, 5, 5},
            [](Value x) { return layers::pad_channels(x, 8, 8); }),
      unary("pad_channels_odd", {2, 5, 3, 4},
            [](Value x) { return layers::pad_channels(x, 2, 11); }),
      unary("dropout_of_an_image", odd, [](Value x) { return layers::dropout(x, 0.8); }),
      unary("dropout_of_a_matrix", {4, 100}, [](Value x) { return layers::dropout(x, 0.5); }),
      unary("drop_path_of_an_image", {7, 17, 5, 3},
            [](Value x) { return layers::drop_path(x, 0.5, 1); }),
      unary("drop_path_of_small_examples", {37, 3},
            [](Value x) { return layers::drop_path(x, 0.25, 1000); }),
      unary("lrn_alexnet_cifar", {2, 64, 5, 5},
            [](Value x) { return layers::lrn(x, {.radius = 4, .alpha = 0.001 / 9}); }),
      unary("lrn_few_channels", {2, 5, 3, 4}, [](Value x) { return layers::lrn(x, {}); }),
      unary("lrn_odd_channels", {2, 17, 3, 4},
            [](Value x) { return layers::lrn(x, {.radius = 2, .bias = 2, .alpha = 0.5}); }),
      unary("lrn_within_cifar10_full", {2, 32, 8, 8},
            [](Value x) { return layers::lrn_within(x, {.radius = 1, .alpha = 0.3}); }),
      unary("lrn_within_odd_channels", {2, 17, 3, 7},
            [](Value x) { return layers::lrn_within(x, {.radius = 2, .bias = 2, .alpha = 0.5}); }),
  };
  std::ranges::move(slice_cases(odd), std::back_inserter(cases));
  return cases;
}

}  // namespace cnn::tests
