#include "bench/plan/compile.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "bench/ranks/rank_context.h"
#include "layers/batch_norm.h"
#include "layers/optimizer.h"
#include "layers/passes/concat_in_place.h"
#include "models/catalog.h"
#include "runtime/cpu/reference_kernel.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

using Describe = std::optional<KernelSpec> (*)(const Op&, const Signature&);

// Like cuDNN's, these fused convolutions need a multiple of eight channels in f16.
std::optional<KernelSpec> describe_as_cuda(const Op& op, const Signature& request) {
  if (op.name() == "fused_conv" &&
      (request.in[0].shape[1] % 8 != 0 || request.in[0].type != DataType::f16)) {
    return std::nullopt;
  }
  return KernelSpec{.workspace = 0, .in = request.in, .out = request.out};
}

// Supports neither fusion into convolutions nor masks nor pitches.
std::optional<KernelSpec> describe_as_cpu(const Op& op, const Signature& request) {
  const auto is_mask = [](const TensorDesc& desc) { return desc.type == DataType::u8; };
  const bool masks = op.name().starts_with("batch_norm") &&
                     (is_mask(request.in.back()) || is_mask(request.out.back()));
  if (op.name() == "fused_conv" || masks) {
    return std::nullopt;
  }
  KernelSpec spec{.workspace = 0, .in = request.in, .out = request.out};
  for (auto* side : {&spec.in, &spec.out}) {
    for (TensorDesc& desc : *side) {
      desc.pitch = 0;
    }
  }
  return spec;
}

// Returns a backend that can plan steps but not run them.
Backend backend_like(const std::string& device) {
  Backend backend;
  backend.kernels.otherwise(
      device == "cuda" ? Describe{describe_as_cuda} : Describe{describe_as_cpu},
      [](const Op& op, const Signature&) { return std::make_unique<ReferenceKernel>(op); });
  backend.preferred_layout = [](DataType) { return Layout::nhwc; };
  return backend;
}

struct Asked {
  std::string device;
  FusionChoice fusion{};
  std::string model = "resnet20", data_set = "cifar10";
  DataType compute = DataType::f16;
  bool optimise = true;
  Phase phase = Phase::training;
};

Compiled compiled(const Asked& request) {
  Config config;
  config.graph.fusion = request.fusion;
  config.graph.optimize = request.optimise;
  const models::Model& model = models::find(request.data_set, request.model);
  return compile({.config = config,
                  .model = model,
                  .phase = request.phase,
                  .batch = 2,
                  .image_size = model.image_size,
                  .compute = request.compute,
                  .input = {}},
                 only_rank(backend_like(request.device)));
}

// Returns the factor on the loss in f16 with this value of --fp16_loss_scale.
double loss_scale(std::optional<double> flag) {
  Config config;
  config.precision.loss_scale = flag;
  const models::Model& model = models::find("cifar10", "resnet20");
  const Compiled step = compile({.config = config,
                                 .model = model,
                                 .phase = Phase::training,
                                 .batch = 2,
                                 .image_size = model.image_size,
                                 .compute = DataType::f16,
                                 .input = {}},
                                only_rank(backend_like("cuda")));
  for (const Node& node : step.plan.graph->nodes()) {
    if (const auto* update = dynamic_cast<const layers::Update*>(node.op.get())) {
      return update->attributes.loss_scale;
    }
  }
  return 0;
}

TEST(LossScale, IsTheModelsWhereTheFlagIsUnsetOrZero) {
  EXPECT_EQ(loss_scale({}), 128);
  EXPECT_EQ(loss_scale(0), 128);
  EXPECT_EQ(loss_scale(1), 1);
  EXPECT_EQ(loss_scale(512), 512);
}

std::map<std::string, std::size_t> counts(const Compiled& compiled) {
  std::map<std::string, std::size_t> result;
  for (const Node& node : compiled.plan.graph->nodes()) {
    ++result[std::string(node.op->name())];
  }
  return result;
}

// Returns the number of update nodes of resnet50, whose parameters take 98 MiB.
std::size_t updates(std::size_t memory, const LmsFlags& lms) {
  Config config;
  config.lms = lms;
  const models::Model& model = models::find("imagenet", "resnet50");
  Backend backend = backend_like("cpu");
  backend.memory.device = memory;
  return counts(compile({.config = config,
                         .model = model,
                         .phase = Phase::training,
                         .batch = 1,
                         .image_size = 64,
                         .compute = DataType::f32,
                         .input = {}},
                        only_rank(backend)))["update"];
}

// The step does not depend on the memory; lms_step_test.cpp tests what LMS changes if the step does
// not fit.
TEST(Buckets, DoNotDependOnTheMemory) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20U;
  EXPECT_EQ(updates(16'000 * mebibyte, {.enabled = true}), 2);
  EXPECT_EQ(updates(800 * mebibyte, {.enabled = true}), 2);
  EXPECT_EQ(updates(800 * mebibyte, {}), 2);
  EXPECT_EQ(updates(16'000 * mebibyte, {.enabled = true, .limit = 320}), 2);
}

TEST(Fusion, GoesAsFarAsAsked) {
  const Compiled none = compiled({.device = "cuda", .fusion = FusionChoice::none});
  EXPECT_EQ(none.fusion, layers::Fusion::none);
  EXPECT_EQ(counts(none)["relu"], 18);
  EXPECT_EQ(counts(none)["batch_norm"], 19);

  const Compiled bn = compiled({.device = "cuda", .fusion = FusionChoice::bn});
  EXPECT_EQ(bn.fusion, layers::Fusion::bn);
  EXPECT_EQ(counts(bn)["relu"], 0);
  EXPECT_EQ(counts(bn)["batch_norm"], 19);
  EXPECT_EQ(counts(bn)["fused_conv"], 0);

  const Compiled conv = compiled({.device = "cuda", .fusion = FusionChoice::conv});
  EXPECT_EQ(conv.fusion, layers::Fusion::conv);
  EXPECT_EQ(counts(conv)["batch_norm"], 1);  // after the convolution of three channels
  EXPECT_EQ(counts(conv)["fused_conv"], 18);
}

TEST(Fusion, IsTheBestThatTheBackendHasUnlessAsked) {
  EXPECT_EQ(compiled({.device = "cuda", .fusion = FusionChoice::automatic}).fusion,
            layers::Fusion::conv);
  EXPECT_EQ(
      compiled({.device = "cuda", .fusion = FusionChoice::automatic, .compute = DataType::f32})
          .fusion,
      layers::Fusion::bn);
  EXPECT_EQ(compiled({.device = "cpu", .fusion = FusionChoice::automatic, .compute = DataType::f32})
                .fusion,
            layers::Fusion::bn);
}

TEST(Fusion, IsOffWithoutOptimisations) {
  EXPECT_EQ(
      compiled({.device = "cuda", .fusion = FusionChoice::automatic, .optimise = false}).fusion,
      layers::Fusion::none);
}

TEST(Fusion, FusesConvolutionsOnlyIfThereAreNorms) {
  EXPECT_EQ(compiled({.device = "cuda", .fusion = FusionChoice::conv, .model = "alexnet"}).fusion,
            layers::Fusion::bn);
  EXPECT_EQ(
      compiled({.device = "cuda", .fusion = FusionChoice::conv, .phase = Phase::evaluation}).fusion,
      layers::Fusion::bn);
}

// The network has nine modules, each with a concat and, in training, a split.
TEST(Fusion, MakesBranchesWhereTheyAreConcatenatedOnCuda) {
  const auto found = [](Asked request) {
    request.model = "googlenet";
    request.data_set = "imagenet";
    return layers::count_in_place(*compiled(request).plan.graph);
  };
  for (const FusionChoice fusion :
       {FusionChoice::bn, FusionChoice::conv, FusionChoice::automatic}) {
    const layers::InPlace parts = found({.device = "cuda", .fusion = fusion});
    EXPECT_EQ(parts.nodes, 18U) << word_of(fusion);
    EXPECT_EQ(parts.whole_nodes, 18U) << word_of(fusion);
    EXPECT_EQ(parts.copied_bytes, 0U) << word_of(fusion);
  }
  EXPECT_EQ(
      found({.device = "cuda", .fusion = FusionChoice::bn, .phase = Phase::evaluation}).whole_nodes,
      9U);
  EXPECT_EQ(found({.device = "cuda", .fusion = FusionChoice::none}).bytes, 0U);
  EXPECT_EQ(found({.device = "cpu", .fusion = FusionChoice::bn, .compute = DataType::f32}).bytes,
            0U);
}

// There are sixteen blocks, four of them with a projection. A block stores its end and the raw
// outputs of its convolutions. The stem stays plain, and so do the gradients of norms before
// additions.
TEST(Fusion, StoresOnlyTheEndsOfBlocksNormalisedInResnet50) {
  auto found = counts(compiled({.device = "cuda",
                                .fusion = FusionChoice::automatic,
                                .model = "resnet50",
                                .data_set = "imagenet"}));
  EXPECT_EQ(found["conv"], 1);
  EXPECT_EQ(found["batch_norm"], 1);
  EXPECT_EQ(found["fused_conv"], 52);
  EXPECT_EQ(found["finish_statistics"], 52);
  EXPECT_EQ(found["scale_bias"], 16);
  EXPECT_EQ(found["conv_backward_data_norm"], 32);
  EXPECT_EQ(found["norm_backward_end"], 32);
  EXPECT_EQ(found["fused_conv_backward_weights"], 32);
  EXPECT_EQ(found["batch_norm_backward"], 1 + 16 + 4);
}

// At fifteen ends of blocks the gradient is a sum of two. So is the gradient of the stem's pool,
// but no norm reads it.
TEST(Fusion, AddsGradientsThatMeetWithinTheNorms) {
  for (const Asked& request : {Asked{.device = "cpu",
                              .fusion = FusionChoice::automatic,
                              .model = "resnet50",
                              .data_set = "imagenet"},
                               Asked{.device = "cuda",
                               .fusion = FusionChoice::bn,
                               .model = "resnet50",
                               .data_set = "imagenet"},
                               Asked{.device = "cuda",
                               .fusion = FusionChoice::conv,
                               .model = "resnet50",
                               .data_set = "imagenet"}}) {
    const Compiled result = compiled(request);
    const Graph& graph = *result.plan.graph;
    const auto sums = std::ranges::count_if(graph.nodes(), [&](const Node& node) {
      return node.op->name() == "add" && graph.info(node.outputs[0]).desc.shape.rank() == 4;
    });
    const auto joined = std::ranges::count_if(graph.nodes(), [](const Node& node) {
      const auto* norm = dynamic_cast<const layers::BatchNormBackward*>(node.op.get());
      return norm != nullptr && norm->joined;
    });
    EXPECT_EQ(sums, 1) << request.device << " " << word_of(request.fusion);
    EXPECT_EQ(joined, 15) << request.device << " " << word_of(request.fusion);
  }
}

// A mask has one byte for eight elements of its image; no other tensor here is of bytes.
TEST(Fusion, KeepsTheGatesOfJoinsAsMasksWhereTheBackendReadsThem) {
  const auto masks = [](const Asked& request) {
    const Compiled result = compiled(request);
    return std::ranges::count_if(result.plan.graph->tensors(), [](const TensorInfo& info) {
      return info.desc.type == DataType::u8;
    });
  };
  EXPECT_EQ(masks({.device = "cuda", .fusion = FusionChoice::bn}), 9);
  EXPECT_EQ(masks({.device = "cuda", .fusion = FusionChoice::conv}), 9);
  EXPECT_EQ(masks({.device = "cuda", .fusion = FusionChoice::none}), 0);
  EXPECT_EQ(masks({.device = "cpu", .fusion = FusionChoice::bn, .compute = DataType::f32}), 0);
}

TEST(Fusion, NeedsCudaAndF16ForConvolutions) {
  for (const Asked& request :
       {Asked{.device = "cpu", .fusion = FusionChoice::conv, .compute = DataType::f32},
        Asked{.device = "cuda", .fusion = FusionChoice::conv, .compute = DataType::f32},
        Asked{.device = "cuda", .fusion = FusionChoice::conv, .compute = DataType::bf16}}) {
    EXPECT_THAT([&] { compiled(request); },
                ThrowsMessage<Error>(HasSubstr("--fusion=conv needs the CUDA backend")));
  }
}

}  // namespace
}  // namespace cnn::bench
