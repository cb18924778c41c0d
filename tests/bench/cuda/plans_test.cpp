// The whole training step of every network, planned for devices that are only described: every
// node has a kernel, every convolution an engine of cuDNN that needs no compiler, and all
// workspaces are in the memory plan.

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>

#include "bench/compile.h"
#include "bench/cuda/machines.h"
#include "layers/cuda/kernels.h"
#include "models/catalog.h"

namespace cnn::bench {
namespace {

using layers::cuda::Libraries;

Backend backend_for(const std::string& machine) {
  Backend backend;
  layers::cuda::add_kernels(
      backend.kernels,
      std::make_shared<Libraries>(find_machine(machine), layers::cuda::LibraryOptions{}));
  backend.preferred_layout = layers::cuda::preferred_layout;
  return backend;
}

bool is_convolution(const Op& op) {
  return op.name().starts_with("conv") && op.name() != "convert";
}

struct Found {
  std::size_t convolutions = 0;
  std::size_t largest_workspace = 0;  // bytes, of a convolution
};

Found plan(const models::Model& model, const Backend& backend, DataType compute, Phase phase) {
  Config config;
  config.model = model.name;
  config.use_fp16 = compute == DataType::f16;
  const Compiled compiled = compile({.config = config,
                                     .model = model,
                                     .phase = phase,
                                     .batch = model.batch_size,
                                     .image_size = model.image_size,
                                     .compute = compute,
                                     .input = {}},
                                    backend);
  Found found;
  const std::span<const Node> nodes = compiled.plan.graph->nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (is_convolution(*nodes[i].op)) {
      ++found.convolutions;
      found.largest_workspace = std::max(found.largest_workspace, compiled.plan.specs[i].workspace);
    }
  }
  EXPECT_GE(compiled.plan.memory.device_bytes, found.largest_workspace);
  return found;
}

// Convolutions of the training graph: one forward, one for the weights and, but for those that read
// the image, one for the data.
std::size_t count(std::string_view name) {
  const std::map<std::string_view, std::size_t> layers{
      {"trivial", 0},   {"lenet", 2},       {"alexnet", 5},       {"vgg16", 13},
      {"resnet50", 53}, {"resnet152", 155}, {"resnet50_v1.5", 53}};
  const auto found = layers.find(name);
  return found == layers.end() ? 0 : std::max<std::size_t>(3 * found->second, 1) - 1;
}

class EveryModel : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(EveryModel, HasAPlanInF16) {
  const auto [machine, data_set] = GetParam();
  const Backend backend = backend_for(machine);
  for (const models::Model& model : models::all()) {
    if (model.data_set == data_set) {
      SCOPED_TRACE(std::string(model.name));
      const Found found = plan(model, backend, DataType::f16, Phase::training);
      if (const std::size_t expected = count(model.name); expected > 0) {
        EXPECT_EQ(found.convolutions, expected);
      }
      EXPECT_LE(found.largest_workspace, std::size_t{1} << 30U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, EveryModel,
                         testing::Combine(testing::Values("a100", "h100", "h200"),
                                          testing::Values("imagenet", "cifar10", "mnist")));

class SomeModels : public testing::TestWithParam<std::tuple<const char*, DataType>> {};

TEST_P(SomeModels, HaveAPlanInOtherTypes) {
  const auto [machine, compute] = GetParam();
  const Backend backend = backend_for(machine);
  for (const std::string_view name : {"resnet50", "inception3", "alexnet", "mobilenet"}) {
    SCOPED_TRACE(std::string(name));
    const models::Model& model = models::find("imagenet", name);
    EXPECT_GT(plan(model, backend, compute, Phase::training).convolutions, 0U);
    EXPECT_GT(plan(model, backend, compute, Phase::forward_only).convolutions, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, SomeModels,
                         testing::Combine(testing::Values("a100", "h200"),
                                          testing::Values(DataType::f32, DataType::bf16)));

}  // namespace
}  // namespace cnn::bench
