// Tests gradient sums on real devices, one per rank, by NCCL and through the host, enqueued and
// replayed. Tests without enough devices or without NCCL are skipped by name.
#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "allreduce/shared_memory.h"
#include "allreduce/world.h"
#include "bench/cuda/backend.h"
#include "bench/ranks/device_exchange.h"
#include "bench/ranks/rank_context.h"
#include "bench/ranks/rank_exchange.h"
#include "layers/all_reduce.h"
#include "runtime/cuda/device.h"
#include "runtime/memory_plan.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

constexpr std::int64_t sizes[] = {1000, 3};

// One rank, on the thread that computes for it.
class DeviceRank {
 public:
  DeviceRank(allreduce::Transport& transport, Config config)
      : host_(transport, allreduce::ranks_on_hosts(1, transport.ranks()), config, "") {
    config.gpu.ordinal = transport.rank();
    backend_ = cuda_backend().make(config);
    ChosenExchange exchange = exchange_on_device(only_rank(backend_), config.comm, transport, host_,
                                                 [] { return allreduce::nccl::open_library(); });
    const RankContext& context = context_.emplace(std::move(exchange.context));
    memory_ =
        context.shared_memory ? context.shared_memory(bytes) : backend_.device->allocate(bytes);
    pinned_ = backend_.device->allocate_host(bytes);
    stream_ = backend_.device->make_stream(Lane::communicate);
    Signature signature;
    std::size_t at = 0;
    for (const std::int64_t size : sizes) {
      signature.in.push_back({Shape{size}});
      operands_.in.push_back({signature.in.back(), memory_.data() + at});
      at += aligned(signature.in.back().bytes());
    }
    operands_.out = operands_.in;
    signature.out = signature.in;
    kernel_ = context.kernels.make(layers::AllReduce(0, 1), signature);
  }

  // Sums value + position over all ranks and returns the memory.
  std::vector<float> sum(float value, bool replayed) {
    auto* const numbers = reinterpret_cast<float*>(pinned_.data());
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) {
      numbers[i] = value + static_cast<float>(i);
    }
    stream_->copy(memory_.data(), pinned_.data(), bytes);
    if (replayed) {
      Stream* const streams[] = {stream_.get()};
      recording_ = backend_.device->record(streams, [&] { kernel_->run(*stream_, operands_); });
      recording_->replay(*stream_);
    } else {
      kernel_->run(*stream_, operands_);
    }
    stream_->copy(pinned_.data(), memory_.data(), bytes);
    stream_->synchronize();
    std::vector<float> sums(numbers, numbers + 1000);
    sums.insert(sums.end(), numbers + 1008, numbers + 1011);
    return sums;
  }

 private:
  static constexpr std::size_t bytes = 8192;

  RankExchange host_;
  Backend backend_;
  std::optional<RankContext> context_;
  Buffer memory_, pinned_;
  std::unique_ptr<Stream> stream_;
  Operands operands_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Recording> recording_;
};

// The parameters are the number of ranks and the communication backend.
class OnDevices : public testing::TestWithParam<std::tuple<int, CommBackend>> {
 protected:
  void SetUp() override {
    const auto& [ranks, by] = GetParam();
    const cuda::DeviceCount found = cuda::count_devices();
    if (found.devices < ranks) {
      GTEST_SKIP() << "needs " << ranks << " CUDA devices: "
                   << (found.devices == 0 ? found.why_none : "there are fewer");
    }
    if (by == CommBackend::nccl) {
      if (const std::string why = tests::error_of([] { allreduce::nccl::open_library(); });
          !why.empty()) {
        GTEST_SKIP() << why;
      }
    }
  }
};

TEST_P(OnDevices, SumsAreTheSameEnqueuedAndReplayed) {
  const int ranks = std::get<0>(GetParam());
  Config config;
  config.comm.backend = std::get<1>(GetParam());
  config.comm.calibrate = LinkCalibration::off;
  allreduce::SharedMemory memory =
      allreduce::SharedMemory::for_threads(ranks, {.segment_bytes = 16U << 20U});
  const auto work = [&](int number) {
    const auto transport = memory.join(number);
    DeviceRank rank(*transport, config);
    for (const bool replayed : {false, true, true}) {
      const std::vector<float> sums = rank.sum(static_cast<float>(number), replayed);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::size_t place = i < 1000 ? i : i + 8;
        ASSERT_EQ(sums[i],
                  static_cast<float>(ranks * static_cast<int>(place) + ranks * (ranks - 1) / 2));
      }
    }
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < ranks; ++number) {
    threads.emplace_back([&, number] { EXPECT_EQ(tests::error_of([&] { work(number); }), ""); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

INSTANTIATE_TEST_SUITE_P(
    CudaDevices, OnDevices,
    testing::Combine(testing::Values(1, 2), testing::Values(CommBackend::nccl, CommBackend::own)),
    [](const auto& row) {
      return std::string(std::get<1>(row.param) == CommBackend::nccl ? "Nccl" : "ByHost") +
             (std::get<0>(row.param) == 1 ? "OneRank" : "TwoRanks");
    });

}  // namespace
}  // namespace cnn::bench
