#include "runtime/variables.h"

#include <array>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/support/test_ops.h"

namespace cnn {
namespace {

using tests::floats;
using tests::Scale;

TEST(Variables, LaysOutParametersAndStatesAtMultiplesOf64) {
  Graph graph;
  graph.input("x", floats(100));
  const Value w = graph.parameter("w", floats(3), {});
  graph.state("count", floats(17), {}, false);
  emit(Scale(2), {w});
  const Variables variables(graph);
  ASSERT_EQ(variables.all().size(), 2U);
  EXPECT_EQ(variables.all()[0].offset, 0U);
  EXPECT_EQ(variables.all()[1].offset, 64U);
  EXPECT_EQ(variables.bytes(), 64U + 128U);
}

TEST(Variables, GivesViewsOfTheAttachedStorage) {
  Graph graph;
  graph.parameter("w", floats(3), {});
  graph.parameter("v", floats(2), {});
  Variables variables(graph);
  EXPECT_THROW(variables.view(variables.all()[0]), Error) << "no storage yet";
  alignas(64) std::array<std::byte, 128> storage{};
  variables.attach(storage.data());
  EXPECT_EQ(variables.view(*variables.find("v")).data, storage.data() + 64);
  EXPECT_EQ(variables.view(graph.tensors()[0]).data, storage.data());
}

TEST(Variables, FindsByNameOnly) {
  Graph graph;
  graph.parameter("w", floats(3), {});
  const Variables variables(graph);
  EXPECT_EQ(variables.find("w")->info.desc, floats(3));
  EXPECT_EQ(variables.find("x"), nullptr);
}

TEST(Variables, RefusesAMissingOrDifferentVariable) {
  Graph training;
  training.parameter("w", floats(3), {});
  Variables variables(training);
  alignas(64) std::array<std::byte, 64> storage{};
  variables.attach(storage.data());
  TensorInfo info = training.tensors()[0];
  info.desc = floats(4);
  EXPECT_THROW(variables.view(info), Error);
  info.name = "u";
  EXPECT_THROW(variables.view(info), Error);
}

TEST(Variables, RefusesTwoOfOneName) {
  Graph graph;
  graph.state("s", floats(1), {}, false);
  graph.state("s", floats(1), {}, false);
  EXPECT_THROW(Variables{graph}, Error);
}

}  // namespace
}  // namespace cnn
