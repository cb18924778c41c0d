#include "layers/cuda/host_flag.h"

#include <array>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/grid/on_grid.h"

namespace cnn::tests {
namespace {

using testing::ElementsAre;

TEST(CudaExchange, WaitsForTheFlagAndTakesItBack) {
  grid::GridStream stream(grid::Order{});
  std::array<std::uint32_t, 3> flag{1, 0, 0};
  layers::cuda::wait_for_flag(stream, flag.data());
  EXPECT_THAT(flag, ElementsAre(0, 0, 0));
}

TEST(CudaExchange, WaitsNoMoreOnceTheHostHasFailed) {
  grid::GridStream stream(grid::Order{});
  std::array<std::uint32_t, 3> flag{0, 1, 0};
  for (int wait = 0; wait < 2; ++wait) {
    layers::cuda::wait_for_flag(stream, flag.data());
    EXPECT_THAT(flag, ElementsAre(0, 1, 0)) << "later waits end too";
  }
}

}  // namespace
}  // namespace cnn::tests
