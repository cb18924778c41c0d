#include <algorithm>
#include <atomic>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allreduce/communicator.h"
#include "allreduce/shared_memory.h"
#include "allreduce/simd/table.h"
#include "bench/ranks/exchange_flags.h"
#include "layers/all_reduce.h"

namespace cnn::bench {
namespace {

constexpr int variables = 10;

// Reduces the value T i + j of tower i of T for variable j, in the buckets and by the algorithms of
// the flags. Returns how many sums are wrong; all sums are exact.
int wrong_sums_of(const Exchange& exchange, const layers::BucketSizes& sizes,
                  allreduce::Transport& transport) {
  const int rank = transport.rank(), towers = transport.ranks();
  allreduce::BucketCommunicator communicator(transport, allreduce::simd::plain_loops(),
                                             exchange.settings);
  const allreduce::Bytes room = transport.allocate_shared(variables * sizeof(float));
  const std::span<float> values(reinterpret_cast<float*>(room.data()), variables);
  for (int j = 0; j < variables; ++j) {
    values[static_cast<std::size_t>(j)] = static_cast<float>(towers * rank + j);
  }
  const std::vector<std::size_t> bytes(variables, sizeof(float));
  std::size_t begin = 0, bucket = 0;
  for (const std::size_t end : layers::cut_buckets(bytes, sizes)) {
    std::vector<std::span<float>> pieces;
    for (std::size_t j = begin; j < end; ++j) {
      pieces.push_back(values.subspan(j, 1));
    }
    communicator.all_reduce(bucket++, pieces, 1);
    begin = end;
  }
  int wrong = 0;
  for (int j = 0; j < variables; ++j) {
    const int sum = towers * towers * (towers - 1) / 2 + towers * j;
    wrong += values[static_cast<std::size_t>(j)] == static_cast<float>(sum) ? 0 : 1;
  }
  return wrong;
}

int wrong_sums(int towers, const Config& config) {
  const Exchange exchange = make_exchange(config, allreduce::ranks_on_hosts(1, towers), true);
  allreduce::SharedMemory memory =
      allreduce::SharedMemory::for_threads(towers, {.segment_bytes = std::size_t{1} << 20U});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(towers));
  for (int rank = 0; rank < towers; ++rank) {
    threads.emplace_back([&, rank] {
      const std::unique_ptr<allreduce::Transport> transport = memory.join(rank);
      wrong += wrong_sums_of(exchange, bucket_sizes(config.comm), *transport);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return wrong;
}

Config of_towers(int towers) {
  Config config;
  config.num_gpus = towers;
  config.variable_update = VariableUpdate::replicated;
  config.precision.type = Precision::fp16;
  return config;
}

TEST(Aggregation, HasTheOriginalsSumsByEverySpecAndRepacking) {
  constexpr int towers = 10;
  for (const char* const spec :
       {"", "pscpu", "psgpu#4", "xring", "xring#2", "nccl", "collective"}) {
    for (const int repacking : {0, 3}) {
      for (const bool compact : {true, false}) {
        Config config = of_towers(towers);
        if (spec != std::string()) {
          config.comm.spec = spec;
        }
        config.comm.repacking = repacking;
        config.comm.compact = compact;
        EXPECT_EQ(wrong_sums(towers, config), 0) << spec << " repacking " << repacking;
      }
    }
  }
}

TEST(Aggregation, HasTheOriginalsSumsOfPackedSmallGradients) {
  constexpr int towers = 10;
  Config config = of_towers(towers);
  config.comm.spec = "pscpu";
  for (const int bytes : {4, 100}) {
    config.comm.small_bytes = bytes;
    EXPECT_EQ(wrong_sums(towers, config), 0) << bytes;
  }
}

TEST(Aggregation, HasTheOriginalsSumsOfHierarchicalCopies) {
  constexpr int towers = 8;
  for (const int repacking : {0, 3}) {
    Config config = of_towers(towers);
    config.comm.hierarchical_copy = true;
    config.comm.repacking = repacking;
    EXPECT_EQ(wrong_sums(towers, config), 0) << repacking;
  }
}

}  // namespace
}  // namespace cnn::bench
