// Runs the program's own plan of a training step whose branches are views of the concatenated
// images. Our CUDA kernels run on the emulated grid; reference loops compute the convolutions.

#include "layers/passes/concat_in_place.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

#include "tests/layers/branched_step.h"
#include "tests/layers/cuda_grid/device_table.h"
#include "tests/layers/running_graph.h"

namespace cnn::tests {
namespace {

TEST(GridConcatInPlace, KeepsEveryBitOfEveryGradient) {
  const KernelTable table = device_table();
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    const std::shared_ptr<Graph> graph = branched_step(type, table);
    RunningGraph before({.step = graph, .prologue = nullptr}, table);
    RunningGraph after({.step = layers::concat_in_place(*graph, table).graph, .prologue = nullptr},
                       table);
    const layers::InPlace parts = layers::count_in_place(after.planned());
    EXPECT_EQ(parts.nodes, 4U);
    EXPECT_EQ(parts.whole_nodes, 4U);
    before.run();
    after.run();
    ASSERT_GT(before.results().size(), 10U);
    for (std::size_t i = 0; i < before.results().size(); ++i) {
      const TensorView one = before.results()[i], other = after.results()[i];
      EXPECT_TRUE(std::ranges::all_of(one.as<float>(), [](float g) { return g == g; }));
      EXPECT_EQ(std::memcmp(one.data, other.data, one.desc.bytes()), 0) << i;
    }
  }
}

}  // namespace
}  // namespace cnn::tests
