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

const tests::TestOpOptions copies{.lane = Lane::copy_in};

TEST(Variables, LieOnTheHostIfOnlyCopiesTouchThem) {
  Graph graph;
  const Value moved = graph.parameter("moved", floats(100), {});
  const Value both = graph.parameter("both", floats(3), {});
  graph.parameter("unused", floats(5), {});
  emit(Scale(1, copies), {moved});
  emit(Scale(1, copies), {both});
  emit(Scale(2), {both});
  Variables variables(graph);
  EXPECT_TRUE(variables.find("moved")->on_host);
  EXPECT_FALSE(variables.find("both")->on_host);
  EXPECT_FALSE(variables.find("unused")->on_host);
  EXPECT_EQ(variables.host_bytes(), 448U);
  EXPECT_EQ(variables.bytes(), 128U);
  alignas(64) std::array<std::byte, 128> storage{};
  variables.attach(storage.data());
  EXPECT_THROW(variables.view(*variables.find("moved")), Error) << "no storage on the host yet";
  alignas(64) std::array<std::byte, 448> host{};
  variables.attach(storage.data(), host.data());
  EXPECT_EQ(variables.view(*variables.find("moved")).data, host.data());
  EXPECT_EQ(variables.view(*variables.find("both")).data, storage.data());
}

TEST(Variables, RefusesOneOnTheHostThatAnotherGraphHasOnTheDevice) {
  Graph training, evaluation;
  emit(Scale(1, copies), {training.parameter("w", floats(3), {})});
  emit(Scale(2), {evaluation.parameter("w", floats(3), {})});
  EXPECT_THROW((Variables{training, &evaluation}), Error);
  EXPECT_NO_THROW((Variables{training, &training}));
}

TEST(Variables, RefusesTwoOfOneName) {
  Graph graph;
  graph.state("s", floats(1), {}, false);
  graph.state("s", floats(1), {}, false);
  EXPECT_THROW(Variables{graph}, Error);
}

}  // namespace
}  // namespace cnn
