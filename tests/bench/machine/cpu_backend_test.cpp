#include "bench/machine/cpu_backend.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "bench/machine/processors.h"
#include "layers/cpu/threads.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::Contains;
using testing::HasSubstr;

Config on_one_thread() {
  Config config{.device = DeviceKind::cpu};
  config.cpu.intra_threads = 1;
  return config;
}

Backend made(const Config& config) { return cpu_backend().make(config); }

// Runs work that binds its thread to other processors.
void on_another_thread(const std::function<void()>& work) { std::thread(work).join(); }

TEST(CpuBackend, DescribesItself) {
  const BackendKind kind = cpu_backend();
  EXPECT_EQ(kind.device, "cpu");
  EXPECT_EQ(why_missing(kind), "") << "every machine has a CPU";
  const Backend backend = made(on_one_thread());
  EXPECT_EQ(backend.name, "cpu");
  EXPECT_EQ(backend.processors.threads, 1);
  EXPECT_THAT(backend.description, HasSubstr(", 1 threads, "));
  EXPECT_EQ(backend.compute, DataType::f32);
  EXPECT_EQ(backend.precision, "f32");
  EXPECT_FALSE(backend.gpu.has_value());
  EXPECT_GT(backend.memory.device, 0U);
  EXPECT_FALSE(backend.has_own_memory()) << "a CPU computes in host memory";
  EXPECT_FALSE(backend.link.has_value());
}

TEST(CpuBackend, ObeysFlagsOfStepsOnEachOfSeveralRanks) {
  Config config{.device = DeviceKind::cpu};
  config.gpu.graph = false;
  config.lms.enabled = config.lms.verify = true;
  on_another_thread([&] {
    const Backend whole = made(config);
    EXPECT_TRUE(whole.steps.verify);
    EXPECT_FALSE(whole.steps.record);
    EXPECT_THAT(whole.notes, testing::Contains(testing::StartsWith("--lms_verify: ")));
    const Backend part = whole.for_rank(config, 1, 2);
    EXPECT_TRUE(part.steps.verify);
    EXPECT_FALSE(part.steps.record);
  });
}

TEST(CpuBackend, ComputesOnTheProcessorsOfItsRank) {
  if (layers::cpu::user_binds_threads()) {
    GTEST_SKIP() << "environment variables of OpenMP place the threads";
  }
  const Config config{.device = DeviceKind::cpu};
  on_another_thread([&] {
    const std::vector<int> all = usable_processors();
    const Backend part = made(config).for_rank(config, 1, 2);
    EXPECT_EQ(part.processors.cpus, part_of(all, 1, 2));
  });
}

TEST(CpuBackend, ComputesInTheTypesOfTheProcessorOnly) {
  Config config = on_one_thread();
  config.precision.type = Precision::fp16;
  EXPECT_THAT(tests::error_of([&] { made(config); }),
              HasSubstr("--precision=fp16 needs a GPU (--device=gpu)"));
  config.precision.type = Precision::bf16;
  if (cpu_computes_bf16()) {
    EXPECT_EQ(made(config).compute, DataType::bf16);
  } else {
    EXPECT_THAT(tests::error_of([&] { made(config); }), HasSubstr("use --precision=fp32"));
  }
}

TEST(CpuBackend, PinsNoMoreThreadsThanThereAreProcessors) {
  if (layers::cpu::user_binds_threads()) {
    GTEST_SKIP() << "environment variables of OpenMP place the threads";
  }
  Config config = on_one_thread();
  const int available = static_cast<int>(usable_processors().size());
  config.cpu.intra_threads = available + 1;
  on_another_thread([&] {
    const Backend backend = made(config);
    EXPECT_EQ(backend.processors.threads, available);
    EXPECT_THAT(backend.notes,
                Contains(HasSubstr("--num_intra_threads=" + std::to_string(available + 1) + ": ")));
  });
}

TEST(CpuBackend, PlaysADeviceWithMemoryOfItsOwn) {
  Config config = on_one_thread();
  config.lms.device_memory_mb = 8;
  const Backend backend = made(config);
  EXPECT_TRUE(backend.has_own_memory());
  EXPECT_EQ(backend.memory.device, std::size_t{8} << 20U);
  EXPECT_GT(backend.memory.host.value(), 0U) << "the host has the rest of the memory";
  ASSERT_TRUE(backend.link.has_value());
  EXPECT_EQ(backend.link->out, backend.link->in);
  config.lms.device_memory_mb = 2'000'000'000;
  EXPECT_THAT(tests::error_of([&] { made(config); }),
              HasSubstr("--device_memory_mb=2000000000 is more than the "));
}

TEST(CpuBackend, PlaysALinkOfTheGivenSpeed) {
  Config config = on_one_thread();
  config.lms.device_memory_mb = 8;
  config.lms.emulate_link_gbps = {2};
  EXPECT_EQ(made(config).link->in, 2e9) << "both directions have the same speed";
  config.lms.emulate_link_gbps = {2, 3, 4};
  const Backend backend = made(config);
  EXPECT_EQ(backend.link->out, 2e9);
  EXPECT_EQ(backend.link->in, 3e9);
  EXPECT_EQ(backend.link->both, 4e9);
  for (const std::vector<double>& rates :
       std::vector<std::vector<double>>{{0}, {-1}, {2, 0}, {1, 2, 3, 4}}) {
    config.lms.emulate_link_gbps = rates;
    EXPECT_THAT(tests::error_of([&] { made(config); }),
                HasSubstr("--emulate_link_gbps takes out[,in[,both]], each more than 0"));
  }
}

}  // namespace
}  // namespace cnn::bench
