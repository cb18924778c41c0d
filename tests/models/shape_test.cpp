#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>

#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "models/catalog.h"
#include "runtime/error.h"

namespace cnn::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct Counts {
  std::int64_t trainable = 0, moving = 0, decayed = 0, multiply_adds = 0;
  int convs = 0, denses = 0, batch_norms = 0, tensors = 0;
  bool operator==(const Counts&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Counts& c) {
  return out << c.trainable << ", " << c.moving << ", " << c.decayed << ", " << c.multiply_adds
             << ", " << c.convs << ", " << c.denses << ", " << c.batch_norms << ", " << c.tensors;
}

struct Built {
  std::unique_ptr<Graph> graph;
  Shape shape;  // shape of the logits
};

Built build(const Model& model, int image_size, std::int64_t batch = 1) {
  auto graph = std::make_unique<Graph>();
  const Shape shape{batch, model.channels, image_size, image_size};
  const Value images = graph->input("images", {.shape = shape});
  const Shape result = logits(model, images).desc().shape;
  return {std::move(graph), result};
}

void count_node(const Graph& graph, const Node& node, Counts& counts) {
  const bool conv = dynamic_cast<const layers::Conv2d*>(node.op.get()) != nullptr;
  const bool dense = dynamic_cast<const layers::Dense*>(node.op.get()) != nullptr;
  counts.convs += conv ? 1 : 0;
  counts.denses += dense ? 1 : 0;
  counts.batch_norms += dynamic_cast<const layers::BatchNorm*>(node.op.get()) != nullptr ? 1 : 0;
  if (conv || dense) {
    std::vector<TensorDesc> in;
    for (const TensorId id : node.inputs) {
      in.push_back(graph.info(id).desc);
    }
    counts.multiply_adds += static_cast<std::int64_t>(node.op->flops(in) / 2);
  }
}

Counts count(const Graph& graph) {
  Counts counts;
  for (const TensorInfo& info : graph.tensors()) {
    const std::int64_t elements = info.desc.shape.elements();
    if (info.role == Role::parameter) {
      counts.trainable += elements;
      counts.decayed += info.decay ? elements : 0;
      ++counts.tensors;
    } else if (info.role == Role::state) {
      counts.moving += elements;
    }
  }
  for (const Node& node : graph.nodes()) {
    count_node(graph, node, counts);
  }
  return counts;
}

struct Row {
  std::string_view data_set, name;
  Counts counts;
};

// Reference counts of tf_cnn_benchmarks for batch 1 at the default image size; those of mnist are
// computed by hand.
constexpr Row rows[] = {
    // Columns: trainable, moving, decayed, forward multiply-adds, conv, dense, batch norm,
    // tensors.
    {"imagenet", "alexnet", {61842345, 0, 61842345, 838792896, 5, 3, 0, 16}},
    {"imagenet", "vgg11", {132867433, 0, 132867433, 7609094144, 8, 3, 0, 22}},
    {"imagenet", "vgg16", {138361641, 0, 138361641, 15470268416, 13, 3, 0, 32}},
    {"imagenet", "vgg19", {143671337, 0, 143671337, 19632066560, 16, 3, 0, 38}},
    {"imagenet", "lenet", {2173353, 0, 2173353, 14034944, 2, 2, 0, 8}},
    {"imagenet", "overfeat", {145924969, 0, 145924969, 2801408000, 5, 3, 0, 16}},
    {"imagenet", "trivial", {4263877, 0, 4263877, 4258779, 0, 3, 0, 6}},
    {"imagenet", "googlenet", {6999577, 0, 6999577, 1582672896, 57, 1, 0, 116}},
    {"imagenet", "inception3", {23819401, 34432, 23802185, 5713218144, 94, 1, 94, 190}},
    {"imagenet", "inception4", {42649769, 63168, 42618185, 12253976160, 149, 1, 149, 300}},
    {"imagenet", "resnet50", {25559081, 53120, 25505961, 3857975296, 53, 1, 53, 161}},
    {"imagenet", "resnet50_v1.5", {25559081, 53120, 25505961, 4089186304, 53, 1, 53, 161}},
    {"imagenet", "resnet50_v2", {25536361, 45568, 25505961, 3857975296, 53, 1, 50, 138}},
    {"imagenet", "resnet101", {44551209, 105344, 44445865, 7570196480, 104, 1, 104, 314}},
    {"imagenet", "resnet101_v2", {44511081, 97792, 44445865, 7570196480, 104, 1, 101, 274}},
    {"imagenet", "resnet152", {60194857, 151424, 60043433, 11282417664, 155, 1, 155, 467}},
    {"imagenet", "resnet152_v2", {60139369, 143872, 60043433, 11282417664, 155, 1, 152, 410}},
    {"imagenet", "mobilenet", {4509155, 34112, 4509155, 301777553, 53, 1, 52, 160}},
    {"imagenet", "nasnet", {5291035, 36738, 5291035, 563639872, 356, 1, 192, 746}},
    {"imagenet", "nasnetlarge", {88757183, 196668, 88757183, 23783418690, 488, 1, 264, 1022}},
    {"imagenet", "official_resnet18", {11694249, 9728, 11694249, 1826918912, 21, 1, 21, 65}},
    {"imagenet", "official_resnet34", {21802409, 17152, 21802409, 3676606976, 37, 1, 37, 113}},
    {"imagenet", "official_resnet50", {25559081, 53120, 25559081, 4089186304, 53, 1, 53, 161}},
    {"imagenet", "official_resnet101", {44551209, 105344, 44551209, 7801407488, 104, 1, 104, 314}},
    {"imagenet", "official_resnet152", {60194857, 151424, 60194857, 11513628672, 155, 1, 155, 467}},
    {"imagenet", "official_resnet200", {64675881, 176000, 64675881, 15007483904, 203, 1, 203, 611}},
    {"imagenet", "official_resnet18_v2", {11692329, 7808, 11692329, 1826918912, 21, 1, 17, 57}},
    {"imagenet", "official_resnet34_v2", {21800489, 15232, 21800489, 3676606976, 37, 1, 33, 105}},
    {"imagenet", "official_resnet50_v2", {25551401, 45440, 25551401, 4089186304, 53, 1, 49, 153}},
    {"imagenet",
     "official_resnet101_v2",
     {44543529, 97664, 44543529, 7801407488, 104, 1, 100, 306}},
    {"imagenet",
     "official_resnet152_v2",
     {60187177, 143744, 60187177, 11513628672, 155, 1, 151, 459}},
    {"imagenet",
     "official_resnet200_v2",
     {64668201, 168320, 64668201, 15007483904, 203, 1, 199, 603}},
    {"cifar10", "alexnet", {1756619, 0, 1756619, 32778304, 2, 3, 0, 10}},
    {"cifar10", "cifar10_full", {90603, 0, 90603, 12299264, 3, 1, 0, 8}},
    {"cifar10", "trivial", {56332, 0, 56332, 52224, 0, 3, 0, 6}},
    {"cifar10", "resnet20", {269787, 1376, 268411, 40551104, 19, 1, 19, 59}},
    {"cifar10", "resnet20_v2", {269467, 1408, 268411, 40551104, 19, 1, 20, 51}},
    {"cifar10", "resnet32", {464219, 2272, 461947, 68862656, 31, 1, 31, 95}},
    {"cifar10", "resnet32_v2", {463675, 2304, 461947, 68862656, 31, 1, 32, 81}},
    {"cifar10", "resnet44", {658651, 3168, 655483, 97174208, 43, 1, 43, 131}},
    {"cifar10", "resnet44_v2", {657883, 3200, 655483, 97174208, 43, 1, 44, 111}},
    {"cifar10", "resnet56", {853083, 4064, 849019, 125485760, 55, 1, 55, 167}},
    {"cifar10", "resnet56_v2", {852091, 4096, 849019, 125485760, 55, 1, 56, 141}},
    {"cifar10", "resnet110", {1728027, 8096, 1719931, 252887744, 109, 1, 109, 329}},
    {"cifar10", "resnet110_v2", {1726027, 8128, 1719931, 252887744, 109, 1, 110, 276}},
    {"cifar10", "densenet40_k12", {1021083, 18096, 1002987, 264813376, 39, 1, 39, 158}},
    {"cifar10", "densenet100_k12", {6983163, 117216, 6865947, 1769517616, 99, 1, 99, 398}},
    {"cifar10", "densenet100_k24", {27256059, 231264, 27024795, 6889350064, 99, 1, 99, 398}},
    {"cifar10", "nasnet", {3347307, 37248, 3347307, 544334080, 446, 1, 244, 938}},
    {"mnist", "mnist_deep", {3274634, 0, 3274634, 13883904, 2, 2, 0, 8}},
    {"mnist", "lenet", {1663370, 0, 1663370, 12273152, 2, 2, 0, 8}},
    {"mnist", "trivial", {49947, 0, 49947, 45840, 0, 3, 0, 6}},
};

TEST(Shapes, CountAsInTheOriginal) {
  for (const Row& row : rows) {
    const Model& model = find(row.data_set, row.name);
    EXPECT_EQ(count(*build(model, model.image_size).graph), row.counts)
        << row.data_set << " " << row.name;
  }
}

TEST(Shapes, AreCheckedForEveryRowOfTheCatalog) { EXPECT_EQ(std::size(rows), all().size()); }

TEST(Shapes, KeepTheBatchAndEndInTheClasses) {
  for (const Model& model : all()) {
    EXPECT_EQ(build(model, model.image_size, 3).shape, Shape({3, model.classes})) << model.name;
  }
}

TEST(Shapes, HaveNoBatchNormOfTrainingInAnEvaluationGraph) {
  Graph graph(Traits{.training = false});
  logits(find("imagenet", "inception4"), graph.input("images", {.shape = {2, 3, 299, 299}}));
  const Counts counts = count(graph);
  EXPECT_EQ(counts.batch_norms, 0);
  EXPECT_EQ(counts.moving, 63168);
  EXPECT_EQ(counts.trainable, 42649769);
}

// `map` is the size of MobileNet's last feature map before its pool, for each image size.
TEST(Shapes, ShrinkThirtyTwofoldInMobilenet) {
  for (const auto& [image, map] : {std::pair{224, 7}, std::pair{192, 6}, std::pair{160, 5},
                                   std::pair{128, 4}, std::pair{96, 3}}) {
    const Built built = build(find("imagenet", "mobilenet"), image);
    std::int64_t seen = 0;
    for (const TensorInfo& info : built.graph->tensors()) {
      const Shape& shape = info.desc.shape;
      if (info.role == Role::activation && shape.rank() == 4 && shape[1] == 1280) {
        seen = std::max(seen, shape[2]);
      }
    }
    EXPECT_EQ(seen, map);
  }
}

TEST(Shapes, AreThoseOfTheNetworkInAnAuxiliaryHead) {
  for (const auto& [data_set, name] :
       {std::pair{"imagenet", "inception3"}, std::pair{"imagenet", "nasnet"},
        std::pair{"cifar10", "nasnet"}}) {
    const Model& model = find(data_set, name);
    Graph graph;
    const Logits made = logits_of_two_heads(
        model, graph.input("images", {.shape = {2, 3, model.image_size, model.image_size}}));
    EXPECT_EQ(made.main.desc().shape, Shape({2, model.classes})) << name;
    EXPECT_EQ(made.auxiliary.desc().shape, Shape({2, model.classes})) << name;
  }
}

// The expected count is that of the original's own auxiliary head, which none of its flags enables.
TEST(Shapes, HaveTheOriginalsParametersInInceptionsAuxiliaryHead) {
  const Model& model = find("imagenet", "inception3");
  Graph graph;
  logits_of_two_heads(model, graph.input("images", {.shape = {1, 3, 299, 299}}));
  EXPECT_EQ(count(graph).trainable, 23819401 + 3326569);
  EXPECT_EQ(count(graph).multiply_adds, 5713218144 + 5683968);
}

TEST(Shapes, RefuseAnAuxiliaryHeadThatANetworkLacks) {
  Graph graph;
  const Value images = graph.input("images", {.shape = {1, 3, 224, 224}});
  EXPECT_THAT(([&] { logits_of_two_heads(find("imagenet", "resnet50"), images); }),
              ThrowsMessage<Error>("--auxiliary_head: resnet50 has no auxiliary head; drop the "
                                   "flag, or choose inception3 or nasnet or nasnetlarge"));
  EXPECT_THAT(([&] { logits_of_two_heads(find("mnist", "lenet"), images); }),
              ThrowsMessage<Error>("--auxiliary_head: lenet has no auxiliary head; drop the flag"));
}

TEST(Shapes, AllowOtherImageSizes) {
  for (const auto& [name, size] :
       {std::pair{"resnet50", 64}, std::pair{"resnet50", 33}, std::pair{"resnet50_v2", 448},
        std::pair{"inception3", 224}, std::pair{"inception4", 150}, std::pair{"googlenet", 64},
        std::pair{"vgg16", 64}, std::pair{"alexnet", 100}, std::pair{"overfeat", 100},
        std::pair{"mobilenet", 96}, std::pair{"nasnet", 64}, std::pair{"nasnet", 95},
        std::pair{"official_resnet18", 64}, std::pair{"trivial", 8}, std::pair{"lenet", 32}}) {
    EXPECT_EQ(build(find("imagenet", name), size).shape, Shape({1, 1001})) << name << " " << size;
  }
  EXPECT_EQ(build(find("cifar10", "resnet20"), 64).shape, Shape({1, 11}));
  EXPECT_EQ(build(find("cifar10", "densenet40_k12"), 40).shape, Shape({1, 11}));
}

TEST(Shapes, GrowTheFirstDenseLayerWithTheImage) {
  const Built built = build(find("imagenet", "vgg11"), 256);
  const std::optional<TensorId> weights = built.graph->find("v/cg/affine0/weights");
  ASSERT_TRUE(weights);
  EXPECT_EQ(built.graph->info(*weights).desc.shape, Shape({32768, 4096}));
}

TEST(Shapes, NameTheLayerThatAnImageIsTooSmallFor) {
  EXPECT_THAT(([] { build(find("imagenet", "alexnet"), 10); }),
              ThrowsMessage<Error>(HasSubstr("conv0")));
  EXPECT_THAT(([] { build(find("imagenet", "inception3"), 32); }),
              ThrowsMessage<Error>(HasSubstr("conv")));
  EXPECT_THAT(([] { build(find("imagenet", "vgg16"), 16); }),
              ThrowsMessage<Error>(HasSubstr("pool")));
}

TEST(Shapes, RejectImagesOfOtherChannels) {
  Graph graph;
  const Value images = graph.input("images", {.shape = {1, 3, 28, 28}});
  EXPECT_THAT(([&] { logits(find("mnist", "lenet"), images); }),
              ThrowsMessage<Error>(HasSubstr("takes images of 1 channels")));
}

}  // namespace
}  // namespace cnn::models
