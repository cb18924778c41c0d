#include "bench/plan/graph_dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/test_ops.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(GraphDot, HasABoxForEachNodeAndArrowsBetweenThem) {
  Graph graph;
  const Value x = graph.state("x", {Shape{125}}, {}, false);
  graph.output("y", emit(tests::Scale(0.5F), {emit(tests::Scale(2.0F), {x})}));
  EXPECT_THAT(graph_dot(graph),
              AllOf(testing::StartsWith("digraph step {"), HasSubstr("n0 [label=\"scale#0\\n"),
                    HasSubstr("n0 -> n1;"), HasSubstr("n1 [label=\"scale#1\\n"),
                    HasSubstr("\\n[x]\"];"), testing::EndsWith("}\n")));
}

TEST(GraphDot, HasAnOvalForEachInputAndNoneForAVariable) {
  Graph graph;
  const Value x = graph.input("x", tests::floats(2));
  const Value w = graph.parameter("w", tests::floats(2), {});
  emit(tests::Combine(), {x, w});
  EXPECT_THAT(graph_dot(graph), AllOf(HasSubstr("t0 [shape=oval, label=\"x\\n"),
                                      HasSubstr("t0 -> n0;"), Not(HasSubstr("t1 "))));
}

TEST(GraphDot, HasAnArrowForEachUseOfATensor) {
  Graph graph;
  const Value x = graph.input("x", tests::floats(2));
  const Value y = emit(tests::Scale(2), {x});
  emit(tests::Combine(), {y, y});
  EXPECT_THAT(graph_dot(graph), HasSubstr("n0 -> n1;\n  n0 -> n1;\n"));
}

TEST(GraphDot, KeepsQuotesAndBackslashesInsideItsLabels) {
  Graph graph;
  graph.input("a\"b\\c", tests::floats(2));
  EXPECT_THAT(graph_dot(graph), HasSubstr(R"(label="a\"b\\c\n)"));
}

}  // namespace
}  // namespace cnn::bench
