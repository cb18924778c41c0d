#include "bench/machine/ceilings.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <thread>

#include "bench/machine/cpu_backend.h"
#include "layers/dense.h"
#include "runtime/cpu/device.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(BestTwoAgree, ComparesTheTwoSmallestOfAllValues) {
  EXPECT_TRUE(best_two_agree(std::array{9.0, 1.0, 5.0, 1.01}));
  EXPECT_FALSE(best_two_agree(std::array{1.0, 1.1, 1.2}));
  EXPECT_FALSE(best_two_agree(std::array{1.0}));
  EXPECT_FALSE(best_two_agree({}));
}

TEST(MemorySet, TakesHalfOfWhatIsFreeAtMost) {
  EXPECT_EQ(memory_set_bytes(100, 25, 1000), 100);
  EXPECT_EQ(memory_set_bytes(100, 25, 150), 75);
}

TEST(MemorySet, IsNoneWhereACacheWouldHoldMuchOfIt) {
  EXPECT_EQ(memory_set_bytes(100, 25, 99), std::nullopt);
  EXPECT_EQ(memory_set_bytes(100, 0, 24), std::nullopt);
  EXPECT_EQ(memory_set_bytes(100, 0, 26), 13);
}

Backend cpu() {
  const Config config;
  return cpu_backend().make(config);
}

TEST(Ceilings, AreMeasuredWithTheBackendsKernels) {
  const Backend backend = cpu();
  const MeasuredCeilings measured = measure_ceilings(backend, DataType::f32);
  ASSERT_TRUE(measured.ceilings) << measured.notes.front();
  EXPECT_GT(measured.ceilings->flops_per_second, 1e8);
  EXPECT_GT(measured.ceilings->bytes_per_second, 1e8);
  double slower = measured.ceilings->bytes_per_second;
  for (std::size_t i = measured.ceilings->caches.size(); i-- > 0;) {
    if (const CacheCeiling& cache = measured.ceilings->caches.at(i); cache.bytes > 0) {
      EXPECT_GE(cache.bytes_per_second, slower);
      slower = cache.bytes_per_second;
    }
  }
}

// A kernel that takes a fixed time for any operands.
class Sleeping final : public Kernel {
 public:
  explicit Sleeping(std::chrono::milliseconds time) : time_(time) {}
  void run(Stream& /*stream*/, const Operands& /*operands*/) override {
    std::this_thread::sleep_for(time_);
  }

 private:
  std::chrono::milliseconds time_;
};

// Products take a millisecond and all other ops a hundred. The measured bandwidth is therefore that
// of reading weights, which is at most their bytes per millisecond.
TEST(Ceilings, CountWeightsInTheTypeInWhichTheKernelTakesThem) {
  Backend backend = cpu();
  std::size_t largest = 0;
  backend.processors.caches.clear();
  backend.kernels = {};
  backend.kernels.add<layers::Dense>(
      [&largest](const layers::Dense& /*op*/, const Signature& request) {
        KernelSpec spec{.in = request.in, .out = request.out};
        spec.in[1].type = DataType::bf16;
        largest = std::max(largest, spec.in[1].bytes());
        return std::optional(spec);
      },
      [](const layers::Dense& /*op*/, const Signature& /*signature*/) {
        return std::make_unique<Sleeping>(std::chrono::milliseconds(1));
      });
  backend.kernels.otherwise(
      [](const Op& /*op*/, const Signature& request) {
        return std::optional(KernelSpec{.in = request.in, .out = request.out});
      },
      [](const Op& /*op*/, const Signature& /*signature*/) {
        return std::make_unique<Sleeping>(std::chrono::milliseconds(100));
      });
  const MeasuredCeilings measured = measure_ceilings(backend, DataType::bf16);
  ASSERT_TRUE(measured.ceilings) << measured.notes.front();
  EXPECT_LE(measured.ceilings->bytes_per_second, static_cast<double>(largest) / 1e-3);
}

TEST(Ceilings, AreLeftOutWithALineWhereMemoryIsShort) {
  Backend backend = cpu();
  CpuOptions options;
  options.memory_limit = 1 << 20;
  backend.device = std::make_unique<CpuDevice>(std::move(options));
  const MeasuredCeilings measured = measure_ceilings(backend, DataType::f32);
  EXPECT_FALSE(measured.ceilings);
  EXPECT_THAT(measured.notes, ElementsAre(HasSubstr("half of the 1 MiB that are free")));
}

TEST(Ceilings, AreLeftOutWithALineWhereAKernelIsMissing) {
  Backend backend = cpu();
  backend.kernels = KernelTable();
  const MeasuredCeilings measured = measure_ceilings(backend, DataType::f32);
  EXPECT_FALSE(measured.ceilings);
  EXPECT_THAT(measured.notes, ElementsAre(HasSubstr("were not measured: no kernel")));
}

}  // namespace
}  // namespace cnn::bench
