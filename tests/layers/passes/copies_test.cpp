#include "layers/passes/copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/optimizer.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

// Describes everything as it is asked, but an update with copies only if `copies`.
KernelTable table_that(bool copies) {
  KernelTable table;
  table.otherwise(
      [copies](const Op& op, const Signature& s) -> std::optional<KernelSpec> {
        const auto* update = dynamic_cast<const Update*>(&op);
        if (update != nullptr && !update->attributes.copied.empty() && !copies) {
          return std::nullopt;
        }
        return KernelSpec{.workspace = 0, .in = s.in, .out = s.out};
      },
      [](const Op&, const Signature&) { return std::unique_ptr<Kernel>(); });
  return table;
}

TensorDesc image(DataType type, Layout layout = Layout::nhwc) {
  return {.shape = {4, 3, 2, 2}, .type = type, .layout = layout};
}

// A graph as the layout pass leaves it: a parameter "w", what `read` does with it, and its update.
struct Trained {
  Graph graph;
  Value w = graph.parameter("w", image(DataType::f32), {});

  // x in f16 -> its gradient; the tensor is made as `desc` says.
  TensorId convert(const TensorDesc& desc) {
    const TensorId made = graph.add_tensor({.name = "w:converted", .desc = desc});
    graph.add_node(
        {.op = std::make_shared<Convert>(desc.type), .inputs = {w.id}, .outputs = {made}});
    return made;
  }
  TensorId scale(TensorId id) {
    const TensorId made = graph.add_tensor({.name = "y", .desc = graph.info(id).desc});
    graph.add_node({.op = std::make_shared<Scale>(2.0F), .inputs = {id}, .outputs = {made}});
    return made;
  }
  void update() {
    const TensorId g =
        graph.add_tensor({.name = "g", .desc = image(DataType::f32), .role = Role::input});
    const TensorId rate = graph.add_tensor(
        {.name = "rate", .desc = described({}, DataType::f32), .role = Role::input});
    const TensorId l2 = graph.add_tensor({.name = "l2", .desc = described({1}, DataType::f32)});
    graph.add_node({.op = std::make_shared<Update>(UpdateAttributes{.decay = {true}}, 1),
                    .inputs = {rate, w.id, g},
                    .outputs = {l2}});
  }
};

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    names.emplace_back(node.op->name());
  }
  return names;
}

TEST(KeepCopies, MovesAConversionIntoThePrologueAndTheUpdate) {
  Trained t;
  t.scale(t.convert(image(DataType::f16)));
  t.update();
  const PrologueSplit divided = keep_copies(t.graph, table_that(true));
  EXPECT_THAT(ops_of(*divided.step), ElementsAre("scale", "update"));
  EXPECT_THAT(ops_of(*divided.prologue), ElementsAre("convert"));
  const Node& update = divided.step->nodes()[1];
  EXPECT_THAT(dynamic_cast<const Update&>(*update.op).attributes.copied, ElementsAre(0));
  const TensorInfo& copy = divided.step->info(update.inputs.back());
  EXPECT_EQ(copy.role, Role::derived);
  EXPECT_EQ(copy.desc, image(DataType::f16));
  EXPECT_EQ(update.inputs.back(), divided.step->nodes()[0].inputs[0]) << "what the step reads";
  EXPECT_TRUE(update.op->mutates(update.inputs.size() - 1));
  EXPECT_TRUE(divided.prologue->find(copy.name));
}

// The step that is left of a graph in which nothing can be moved.
void expect_untouched(const Trained& t, const KernelTable& table) {
  const PrologueSplit divided = keep_copies(t.graph, table);
  EXPECT_EQ(divided.prologue, nullptr);
  EXPECT_EQ(ops_of(*divided.step), ops_of(t.graph));
}

TEST(KeepCopies, LeavesWhatTheKernelOfTheUpdateCannotWrite) {
  Trained t;
  t.scale(t.convert(image(DataType::f16)));
  t.update();
  expect_untouched(t, table_that(false));
}

TEST(KeepCopies, LeavesWhatLiesInAnotherOrder) {
  Trained t;
  t.scale(t.convert(image(DataType::f16, Layout::nchw)));
  t.update();
  expect_untouched(t, table_that(true));
}

TEST(KeepCopies, LeavesACopyOf32Bits) {
  Trained t;
  t.scale(t.convert(image(DataType::f32)));
  t.update();
  expect_untouched(t, table_that(true));
}

TEST(KeepCopies, LeavesWhatIsReadAfterTheUpdate) {
  Trained t;
  const TensorId copy = t.convert(image(DataType::f16));
  t.update();
  t.scale(copy);
  expect_untouched(t, table_that(true));
}

TEST(KeepCopies, LeavesWhatIsMadeAfterTheUpdate) {
  Trained t;
  t.update();
  t.scale(t.convert(image(DataType::f16)));
  expect_untouched(t, table_that(true));
}

TEST(KeepCopies, LeavesAnOutputOfTheGraph) {
  Trained t;
  const TensorId copy = t.convert(image(DataType::f16));
  t.update();
  t.graph.output("copy", {&t.graph, copy});
  expect_untouched(t, table_that(true));
}

TEST(KeepCopies, TakesTheFirstOfTwoConversions) {
  Trained t;
  t.scale(t.convert(image(DataType::f16)));
  t.scale(t.convert(image(DataType::bf16)));
  t.update();
  const PrologueSplit divided = keep_copies(t.graph, table_that(true));
  EXPECT_THAT(ops_of(*divided.step), ElementsAre("scale", "convert", "scale", "update"));
}

}  // namespace
}  // namespace cnn::layers
