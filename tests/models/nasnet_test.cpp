#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/concat.h"
#include "layers/drop_path.h"
#include "models/catalog.h"
#include "runtime/graph.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::unique_ptr<Graph> graph_of(std::string_view data_set, std::string_view name) {
  const Model& model = find(data_set, name);
  auto graph = std::make_unique<Graph>();
  const Shape shape{1, model.channels, model.image_size, model.image_size};
  logits(model, graph->input("images", {.shape = shape}));
  return graph;
}

// Height and channels of the joined outputs of cells, in their order, each run of equal ones once.
std::vector<std::pair<std::int64_t, std::int64_t>> cells_of(std::string_view data_set,
                                                            std::string_view name) {
  std::vector<std::pair<std::int64_t, std::int64_t>> cells;
  const auto graph = graph_of(data_set, name);
  for (const Node& node : graph->nodes()) {
    // The concatenation of two halves of a reduction is none of a cell.
    if (dynamic_cast<const layers::Concat*>(node.op.get()) == nullptr || node.inputs.size() < 4) {
      continue;
    }
    const Shape& shape = graph->info(node.outputs[0]).desc.shape;
    if (cells.empty() || cells.back() != std::pair{shape[2], shape[1]}) {
      cells.emplace_back(shape[2], shape[1]);
    }
  }
  return cells;
}

TEST(Nasnet, HasTheCellsOfThePaper) {
  EXPECT_THAT(cells_of("imagenet", "nasnet"),
              ElementsAre(Pair(56, 44), Pair(28, 88), Pair(28, 264), Pair(14, 352), Pair(14, 528),
                          Pair(7, 704), Pair(7, 1056)));
  EXPECT_THAT(cells_of("imagenet", "nasnetlarge"),
              ElementsAre(Pair(83, 168), Pair(42, 336), Pair(42, 1008), Pair(21, 1344),
                          Pair(21, 2016), Pair(11, 2688), Pair(11, 4032)));
  EXPECT_THAT(cells_of("cifar10", "nasnet"),
              ElementsAre(Pair(32, 192), Pair(16, 256), Pair(16, 384), Pair(8, 512), Pair(8, 768)));
}

// The share of examples that the branches drop in the end, in the order of branches.
std::vector<double> drops_of(std::string_view data_set, std::string_view name) {
  std::vector<double> drops;
  const auto graph = graph_of(data_set, name);
  for (const Node& node : graph->nodes()) {
    if (const auto* op = dynamic_cast<const layers::DropPath*>(node.op.get())) {
      drops.push_back(op->schedule.drop * 0x1p-24);
    }
  }
  return drops;
}

// A normal cell has 8 branches with an operation, a reduction cell 9.
TEST(Nasnet, DropsPathsByTheDepthOfTheCell) {
  EXPECT_TRUE(drops_of("imagenet", "nasnet").empty());
  const std::vector<double> large = drops_of("imagenet", "nasnetlarge");
  ASSERT_EQ(large.size(), 18U * 8 + 4 * 9);
  EXPECT_NEAR(large.front(), 0.3 / 22, 1e-6);
  EXPECT_NEAR(large.back(), 0.3, 1e-6);
  const std::vector<double> cifar = drops_of("cifar10", "nasnet");
  ASSERT_EQ(cifar.size(), 18U * 8 + 2 * 9);
  EXPECT_NEAR(cifar.front(), 0.4 / 20, 1e-6);
  EXPECT_NEAR(cifar.back(), 0.4, 1e-6);
}

}  // namespace
}  // namespace cnn::models
