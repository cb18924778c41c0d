#include "bench/ranks/rank_exchange.h"

#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allreduce/shared_memory.h"
#include "bench/machine/backend.h"
#include "bench/ranks/rank_context.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

// One of two ranks of a host, which run as threads.
struct ExchangingRank {
  RankExchange exchange;
  std::span<float> values;  // in memory that the other rank sees

  ExchangingRank(allreduce::Transport& transport, const Config& config)
      : exchange(transport, allreduce::ranks_on_hosts(1, 2), config, "") {
    constexpr std::size_t count = 3;
    const allreduce::Bytes room = transport.allocate_shared(count * sizeof(float));
    values = {reinterpret_cast<float*>(room.data()), count};
  }

  // Reduces a bucket of the pieces {rank + 1, 10} and {rank}.
  std::vector<float> reduce(float factor = 1) {
    values[0] = static_cast<float>(exchange.rank() + 1);
    values[1] = 10;
    values[2] = static_cast<float>(exchange.rank());
    const std::vector<std::span<float>> pieces{values.first(2), values.last(1)};
    exchange.all_reduce(0, pieces, factor);
    return {values.begin(), values.end()};
  }
};

// Runs the work on both ranks. Returns their errors.
std::string in_two_ranks(const Config& config, const std::function<void(ExchangingRank&)>& work) {
  allreduce::SharedMemory memory =
      allreduce::SharedMemory::for_threads(2, {.segment_bytes = std::size_t{1} << 20U});
  std::array<std::string, 2> errors;
  const auto rank = [&](int number) {
    const std::unique_ptr<allreduce::Transport> transport = memory.join(number);
    errors.at(static_cast<std::size_t>(number)) = tests::error_of([&] {
      ExchangingRank own(*transport, config);
      work(own);
    });
  };
  std::thread second([&] { rank(1); });
  rank(0);
  second.join();
  return errors[0] == errors[1] ? errors[0] : errors[0] + " and " + errors[1];
}

// Returns a configuration that does not measure the links.
Config two_ranks_exchange() {
  Config config;
  config.device = DeviceKind::cpu;
  config.comm.calibrate = LinkCalibration::off;
  return config;
}

TEST(RankExchange, SumsThePiecesOfABucketAndMultipliesThem) {
  const std::string error = in_two_ranks(two_ranks_exchange(), [](ExchangingRank& rank) {
    EXPECT_EQ(rank.exchange.ranks(), 2);
    EXPECT_EQ(rank.reduce(0.5F), (std::vector<float>{1.5, 10, 0.5}));
  });
  EXPECT_EQ(error, "");
}

TEST(RankExchange, CountsItsSecondsUntilTheyAreForgotten) {
  const std::string error = in_two_ranks(two_ranks_exchange(), [](ExchangingRank& rank) {
    EXPECT_EQ(rank.exchange.seconds(), 0);
    rank.reduce();
    const double once = rank.exchange.seconds();
    EXPECT_GT(once, 0);
    EXPECT_GE(rank.exchange.cpu_seconds(), 0);
    rank.reduce();
    EXPECT_GT(rank.exchange.seconds(), once);
    rank.exchange.forget_times();
    EXPECT_EQ(rank.exchange.seconds(), 0);
    EXPECT_EQ(rank.exchange.cpu_seconds(), 0);
  });
  EXPECT_EQ(error, "");
}

TEST(RankExchange, KeepsReductionsOnceTheyAreAskedFor) {
  const std::string error = in_two_ranks(two_ranks_exchange(), [](ExchangingRank& rank) {
    rank.reduce();
    EXPECT_TRUE(rank.exchange.take_reductions().empty());
    rank.reduce();
    rank.reduce();
    const std::vector<ReductionTime> taken = rank.exchange.take_reductions();
    ASSERT_EQ(taken.size(), 2U);
    EXPECT_LE(taken[0].start, taken[0].end);
    EXPECT_LE(taken[0].end, taken[1].start);
    EXPECT_TRUE(rank.exchange.take_reductions().empty());
  });
  EXPECT_EQ(error, "");
}

TEST(RankExchange, RefusesALibraryOfGpusOnAProcessor) {
  Config config = two_ranks_exchange();
  config.comm.backend = CommBackend::nccl;
  const std::string error = in_two_ranks(config, [](ExchangingRank& rank) {
    const Backend backend;
    rank.exchange.serve(only_rank(backend));
  });
  EXPECT_EQ(error, "--comm_backend=nccl sums what GPUs have computed; with --device=cpu use ring");
}

TEST(RankExchange, GivesStepsMemoryThatPeersSee) {
  const std::string error = in_two_ranks(two_ranks_exchange(), [](ExchangingRank& rank) {
    Backend backend;
    backend.add_exchange = [](KernelTable& /*table*/, Communicator& /*communicator*/) {};
    const RankContext context = rank.exchange.serve(only_rank(backend));
    ASSERT_TRUE(context.shared_memory);
    EXPECT_NE(context.shared_memory(1000).data(), nullptr);
    EXPECT_NE(context.progress, nullptr);
    EXPECT_EQ(rank.exchange.on_device(), nullptr);
    EXPECT_TRUE(rank.exchange.is_timed());
  });
  EXPECT_EQ(error, "");
}

TEST(RankExchange, NeedsMemoryForAStepAndForWhatRanksTellOneAnother) {
  EXPECT_GT(segment_bytes_of({.device = 1000}), 1000U);
}

}  // namespace
}  // namespace cnn::bench
