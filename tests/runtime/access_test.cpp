#include "runtime/access.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/test_ops.h"

namespace cnn {
namespace {

std::string text_of(const std::vector<Access>& all) {
  std::string text;
  for (const Access& access : all) {
    text += std::to_string(index_of(access.tensor));
    text += access.kind == Access::Kind::read     ? "r "
            : access.kind == Access::Kind::mutate ? "m "
                                                  : "d ";
  }
  return text;
}

TEST(Accesses, ListTheInputsOfANodeBeforeItsOutputs) {
  Graph graph;
  const Value w = graph.parameter("w", {.shape = Shape{4}}, {});  // tensor 0
  const Value x = graph.input("x", {.shape = Shape{4}});          // tensor 1
  const Value y = emit(tests::Combine(), {x, x});                 // tensor 2
  emit(tests::Descend(), {w, y});                                 // tensor 3
  EXPECT_EQ(text_of(accesses(graph, Compute{NodeId{0}})), "1r 1r 2d ");
  EXPECT_EQ(text_of(accesses(graph, Compute{NodeId{1}})), "0m 2r 3d ");
}

TEST(Accesses, ReadOrDefineTheTensorOfACopy) {
  Graph graph;
  const Value x = graph.input("x", {.shape = Shape{4}});
  EXPECT_EQ(text_of(accesses(graph, Offload{x.id})), "0r ");
  EXPECT_EQ(text_of(accesses(graph, Fetch{x.id})), "0d ");
}

TEST(Persistence, IsThatOfRolesThatSurviveAStep) {
  EXPECT_TRUE(is_persistent(Role::parameter));
  EXPECT_TRUE(is_persistent(Role::state));
  EXPECT_TRUE(is_persistent(Role::derived));
  EXPECT_FALSE(is_persistent(Role::activation));
  EXPECT_FALSE(is_persistent(Role::input));
}

TEST(Accesses, OfATripToTheDiskTouchNoDeviceBytes) {
  Graph graph;
  const Value x = graph.input("x", {.shape = Shape{4}});
  EXPECT_EQ(text_of(accesses(graph, Store{x.id})), "");
  EXPECT_EQ(text_of(accesses(graph, Load{x.id})), "");
  EXPECT_EQ(moved_by_disk(Store{x.id}), x.id);
  EXPECT_EQ(moved_by_disk(Load{x.id}), x.id);
  EXPECT_FALSE(moved_by_disk(Offload{x.id}));
}

}  // namespace
}  // namespace cnn
