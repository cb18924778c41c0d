#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <utility>

#include "layers/cuda/conv_graph.h"
#include "layers/cuda/cudnn/libraries.h"
#include "runtime/cuda/device.h"
#include "tests/support/files.h"

namespace cnn::tests {

// A convolution of one pixel, and libraries on the emulated GPU that choose its engine.
inline const layers::cuda::ConvGraph convolution{
    .type = DataType::f16, .x = {2, 8, 4, 4}, .w = {8, 8, 1, 1}, .y = {2, 8, 4, 4}, .window = {}};
inline const layers::cuda::Libraries::Build build_convolution = [] {
  return operations_of(convolution);
};

class LiveLibraries : public testing::Test {
 protected:
  std::shared_ptr<layers::cuda::Libraries> make(const layers::cuda::LibraryOptions& options = {}) {
    const layers::cuda::Machine machine{.name = device.name(),
                                        .memory_bytes = device.facts().memory_bytes};
    std::optional<layers::cuda::PlanCache> cache;
    if (options.tune) {
      cache.emplace(folder / "plans", layers::cuda::PlanCache::Owner{.device = "any"}, true);
    }
    return std::make_shared<layers::cuda::Libraries>(machine, options, device, std::move(cache));
  }

  const TemporaryFolder folder;
  cuda::CudaDevice device;
};

}  // namespace cnn::tests
