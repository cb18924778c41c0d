// Plans the training step of every network for described devices. Every node must have a kernel,
// every convolution a cuDNN engine that needs no run-time compilation, and every workspace a place
// in the memory plan.

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>

#include "bench/cuda/machines.h"
#include "bench/machine/assumed_kernels.h"
#include "bench/plan/compile.h"
#include "bench/ranks/rank_context.h"
#include "layers/conv.h"
#include "layers/cuda/cudnn/kernels.h"
#include "layers/passes/concat_in_place.h"
#include "models/catalog.h"

namespace cnn::bench {
namespace {

using layers::cuda::Libraries;

Backend backend_for(const std::string& machine) {
  Backend backend{.name = "cuda"};
  layers::cuda::add_kernels(backend.kernels,
                            std::make_shared<Libraries>(machine_of(find_machine(machine)),
                                                        layers::cuda::LibraryOptions{}));
  backend.preferred_layout = layers::cuda::preferred_layout;
  return backend;
}

bool is_convolution(const Op& op) {
  return op.name().starts_with("conv") && op.name() != "convert";
}

struct Found {
  std::size_t convolutions = 0;
  std::size_t own_epilogues = 0;      // a bias, residual or ReLU that no engine computes
  std::size_t largest_workspace = 0;  // bytes, of a single convolution
};

// Our own epilogue reads the bias in f32, an engine reads it in the type of the images.
bool has_own_epilogue(const Op& op, const KernelSpec& spec) {
  const auto* conv = dynamic_cast<const layers::Conv2d*>(&op);
  if (conv == nullptr) {
    return false;
  }
  const layers::ConvAttributes& a = conv->attributes;
  return a.residual || (a.relu && !a.bias) || (a.bias && spec.in[2].type != spec.in[0].type);
}

struct Asked {
  DataType compute{};
  FusionChoice fusion = FusionChoice::bn;
  Phase phase = Phase::training;
};

Compiled compiled(const models::Model& model, const Backend& backend, const Asked& request) {
  Config config;
  config.model.name = model.name;
  config.graph.fusion = request.fusion;
  config.precision.use_fp16 = request.compute == DataType::f16;
  return compile({.config = config,
                  .model = model,
                  .phase = request.phase,
                  .batch = model.batch_size,
                  .image_size = model.image_size,
                  .compute = request.compute,
                  .input = {}},
                 only_rank(backend));
}

Found plan(const models::Model& model, const Backend& backend, const Asked& request) {
  const StepPlan plan = compiled(model, backend, request).plan;
  Found found;
  const std::span<const Node> nodes = plan.graph->nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (is_convolution(*nodes[i].op)) {
      ++found.convolutions;
      found.own_epilogues += has_own_epilogue(*nodes[i].op, plan.specs[i]) ? 1 : 0;
      found.largest_workspace = std::max(found.largest_workspace, plan.specs[i].workspace);
    }
  }
  EXPECT_GE(plan.memory.device_bytes, found.largest_workspace);
  return found;
}

std::size_t count(const Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [&](const Node& node) { return node.op->name() == op; }));
}

// Numbers of convolutions in the forward pass of some ImageNet networks, according to their papers.
const std::map<std::string_view, std::size_t> layers_of{
    {"trivial", 0},   {"alexnet", 5},     {"vgg16", 13},        {"googlenet", 57},
    {"resnet50", 53}, {"resnet152", 155}, {"resnet50_v1.5", 53}};

// Returns the number of convolutions in a training graph: each one forward, for the weights and,
// unless it reads the image, for the data.
std::size_t in_training(std::size_t layers) { return layers == 0 ? 0 : 3 * layers - 1; }

class EveryModel : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(EveryModel, HasAPlanInF16) {
  const auto& [machine, data_set] = GetParam();
  const Backend backend = backend_for(machine);
  for (const models::Model& model : models::all()) {
    if (model.data_set == data_set) {
      SCOPED_TRACE(std::string(model.name));
      const Found found = plan(model, backend, {.compute = DataType::f16});
      const auto layers = layers_of.find(model.name);
      if (data_set == "imagenet" && layers != layers_of.end()) {
        EXPECT_EQ(found.convolutions, in_training(layers->second));
      }
      EXPECT_EQ(found.own_epilogues, 0U);
      EXPECT_LE(found.largest_workspace, std::size_t{1} << 30U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, EveryModel,
                         testing::Combine(testing::Values("a100", "h100", "h200"),
                                          testing::Values("imagenet", "cifar10", "mnist")),
                         [](const testing::TestParamInfo<EveryModel::ParamType>& row) {
                           return std::get<0>(row.param) + "_" + std::get<1>(row.param);
                         });

class BranchedModels : public testing::TestWithParam<std::string> {};

// Every kernel that makes or reads a branch can work in place on the concatenated image.
TEST_P(BranchedModels, CopyNothingInConcatsAndSplits) {
  const Backend backend = backend_for(GetParam());
  const std::map<std::string_view, std::size_t> concats{
      {"googlenet", 9}, {"inception3", 11}, {"inception4", 19}};
  for (const auto& [name, count] : concats) {
    SCOPED_TRACE(std::string(name));
    const models::Model& model = models::find("imagenet", name);
    for (const DataType compute : {DataType::f16, DataType::bf16, DataType::f32}) {
      const auto in_place = [&](Asked request) {
        request.compute = compute;
        return layers::count_in_place(*compiled(model, backend, request).plan.graph);
      };
      EXPECT_EQ(in_place({}).whole_nodes, 2 * count) << name_of(compute);
      EXPECT_EQ(in_place({.phase = Phase::forward_only}).whole_nodes, count) << name_of(compute);
      EXPECT_EQ(in_place({.fusion = FusionChoice::none}).bytes, 0U) << name_of(compute);
    }
    EXPECT_EQ(
        layers::count_in_place(
            *compiled(model, backend, {.compute = DataType::f16, .fusion = FusionChoice::conv})
                 .plan.graph)
            .whole_nodes,
        2 * count);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, BranchedModels, testing::Values("a100", "h100", "h200"),
                         [](const testing::TestParamInfo<std::string>& row) { return row.param; });

// Builds without CUDA plan with these kernels; only the workspaces of cuDNN's engines may differ.
TEST(AssumedKernels, GiveTheStepOfTheLibraries) {
  Backend assumed{.name = "cuda", .preferred_layout = layers::cuda::preferred_layout};
  add_assumed_kernels(assumed.kernels);
  const Backend backend = backend_for("h200");
  for (const std::string_view name : {"resnet50", "googlenet", "vgg16", "alexnet", "inception3"}) {
    for (const DataType compute : {DataType::f16, DataType::f32}) {
      for (const Phase phase : {Phase::training, Phase::forward_only}) {
        SCOPED_TRACE(std::string(name) + " " + std::string(name_of(compute)));
        const models::Model& model = models::find("imagenet", name);
        const Asked request{.compute = compute, .phase = phase};
        const StepPlan theirs = compiled(model, backend, request).plan;
        const StepPlan ours = compiled(model, assumed, request).plan;
        ASSERT_EQ(ours.graph->nodes().size(), theirs.graph->nodes().size());
        // In f32, the engine for AlexNet's first layer has a workspace of about 400 MiB.
        const double least = name == "alexnet" && compute == DataType::f32 ? 0.5 : 0.95;
        const auto most = static_cast<double>(theirs.memory.device_bytes);
        EXPECT_LE(ours.memory.lower_bound_bytes, theirs.memory.lower_bound_bytes);
        EXPECT_GE(static_cast<double>(ours.memory.device_bytes), least * most);
        for (std::size_t n = 0; n < ours.graph->nodes().size(); ++n) {
          EXPECT_EQ(ours.graph->nodes()[n].op->name(), theirs.graph->nodes()[n].op->name());
          EXPECT_EQ(ours.specs[n].extra_traffic, theirs.specs[n].extra_traffic);
          EXPECT_EQ(ours.specs[n].in, theirs.specs[n].in);
          EXPECT_EQ(ours.specs[n].out, theirs.specs[n].out);
          EXPECT_EQ(ours.specs[n].by, theirs.specs[n].by);
        }
      }
    }
  }
}

class FusedModels : public testing::TestWithParam<std::string> {};

// The first convolution stays plain because it has too few channels for sums. The readers of its
// batch norm's image stay plain too.
TEST_P(FusedModels, HaveEnginesForWhatTheBatchNormsAroundThemNeed) {
  const Backend backend = backend_for(GetParam());
  for (const std::string_view name : {"resnet50", "resnet50_v1.5"}) {
    SCOPED_TRACE(std::string(name));
    const Compiled fused = compiled(models::find("imagenet", name), backend,
                                    {.compute = DataType::f16, .fusion = FusionChoice::conv});
    EXPECT_EQ(fused.fusion, layers::Fusion::conv);
    const std::size_t layers = layers_of.at(name);
    EXPECT_GE(count(*fused.plan.graph, "fused_conv"), layers - 1);
    EXPECT_GE(count(*fused.plan.graph, "fused_conv_backward_weights"), layers / 2);
    EXPECT_GE(count(*fused.plan.graph, "conv_backward_data_norm"), layers / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, FusedModels, testing::Values("a100", "h100", "h200"),
                         [](const testing::TestParamInfo<std::string>& row) { return row.param; });

TEST(FusedModel, KeepsPlainConvolutionsWhereThereIsNoEngine) {
  const Backend backend = backend_for("h200");
  for (const std::string_view name : {"mobilenet", "vgg16"}) {
    SCOPED_TRACE(std::string(name));
    const Compiled fused = compiled(models::find("imagenet", name), backend,
                                    {.compute = DataType::f16, .fusion = FusionChoice::automatic});
    EXPECT_GT(count(*fused.plan.graph, "conv"), 0U);
  }
}

// Engines add a bias but no shortcut, so the 16 additions of ResNet-50 are passes of our own.
TEST(ForwardOnly, KnowsWhatOwnEpiloguesMove) {
  const StepPlan plan = compiled(models::find("imagenet", "resnet50"), backend_for("h200"),
                                 {.compute = DataType::f16, .phase = Phase::forward_only})
                            .plan;
  const std::span<const Node> nodes = plan.graph->nodes();
  std::size_t epilogues = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const KernelSpec& spec = plan.specs[i];
    if (has_own_epilogue(*nodes[i].op, spec)) {
      ++epilogues;
      EXPECT_EQ(spec.extra_traffic, 2 * spec.out[0].bytes());
    }
  }
  EXPECT_EQ(epilogues, 16U);
}

class SomeModels : public testing::TestWithParam<std::tuple<std::string, DataType>> {};

TEST_P(SomeModels, HaveAPlanInOtherTypes) {
  const auto& [machine, compute] = GetParam();
  const Backend backend = backend_for(machine);
  for (const std::string_view name : {"resnet50", "inception3", "alexnet", "mobilenet"}) {
    SCOPED_TRACE(std::string(name));
    const models::Model& model = models::find("imagenet", name);
    EXPECT_GT(plan(model, backend, {.compute = compute}).convolutions, 0U);
    EXPECT_GT(plan(model, backend, {.compute = compute, .phase = Phase::forward_only}).convolutions,
              0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, SomeModels,
                         testing::Combine(testing::Values("a100", "h200"),
                                          testing::Values(DataType::f32, DataType::bf16)),
                         [](const testing::TestParamInfo<SomeModels::ParamType>& row) {
                           return std::get<0>(row.param) + "_" +
                                  std::string(name_of(std::get<1>(row.param)));
                         });

}  // namespace
}  // namespace cnn::bench
