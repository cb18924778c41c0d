#include "allreduce/engine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "allreduce/algorithm.h"
#include "tests/allreduce/ranks.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

using tests::as_threads;
using tests::contribution;
using tests::Job;

using Bits = std::vector<std::uint32_t>;

Bits bits(const std::vector<float>& values) {
  Bits result;
  for (const float value : values) {
    result.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return result;
}

// Returns the result, after checking that all ranks have the same.
std::vector<float> result_of(const Topology& topology, const Job& job) {
  std::vector<std::vector<float>> results(topology.host_of.size());
  const std::vector<std::string> errors = as_threads(
      topology.ranks(), {.segment_bytes = std::size_t{1} << 22U}, [&](Transport& transport) {
        results[static_cast<std::size_t>(transport.rank())] =
            tests::reduce(transport, topology, job);
      });
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    EXPECT_EQ(errors[rank], "") << job.algorithm << " rank " << rank;
    EXPECT_EQ(bits(results[rank]), bits(results[0])) << job.algorithm << " rank " << rank;
  }
  return results[0];
}

std::vector<int> dims_for(const std::string& algorithm, int ranks) {
  if (!find(algorithm).grid) {
    return {};
  }
  return ranks % 2 == 0 ? std::vector<int>{2, ranks / 2} : std::vector<int>{ranks};
}

// Returns the sum computed in doubles, which is exact for integers.
std::vector<float> exact(int ranks, std::size_t n, double factor) {
  std::vector<double> sum(n);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<float> x = contribution(rank, n, true);
    for (std::size_t i = 0; i < n; ++i) {
      sum[i] += x[i];
    }
  }
  std::vector<float> result(n);
  for (std::size_t i = 0; i < n; ++i) {
    result[i] = static_cast<float>(sum[i] * factor);
  }
  return result;
}

TEST(Engine, AddsExactlyByEveryAlgorithm) {
  for (const Algorithm& row : catalog()) {
    for (const int ranks : {1, 2, 3, 4, 6, 7}) {
      for (const std::size_t elements : {0, 1, 2, 7, 1023, 4097}) {
        SCOPED_TRACE(std::string(row.name) + " " + std::to_string(ranks) + " " +
                     std::to_string(elements));
        const std::string name(row.name);
        const Job job{.algorithm = name,
                      .elements = elements,
                      .options = {.dims = dims_for(name, ranks), .chunks = 3, .window = 2},
                      .pieces = 4,
                      .factor = ranks == 1 ? 1 : 0.5F,
                      .whole_numbers = true,
                      .times = 2};
        EXPECT_EQ(result_of(ranks_on_hosts(1, ranks), job), exact(ranks, elements, job.factor));
      }
    }
  }
}

float sum_in_order(std::span<const float> x, bool pairwise) {
  if (x.size() == 1) {
    return x[0];
  }
  const std::size_t split = pairwise ? x.size() / 2 : x.size() - 1;
  const float left = sum_in_order(x.first(split), pairwise);
  return left + sum_in_order(x.subspan(split), pairwise);
}

// Returns what the ranks contribute, which are no whole numbers.
std::vector<std::vector<float>> contributions(int ranks, std::size_t n) {
  std::vector<std::vector<float>> values;
  values.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    values.push_back(contribution(rank, n, false));
  }
  return values;
}

// Returns the sums of the values of all ranks, added in this order.
std::vector<float> sums_in_order(const std::vector<std::vector<float>>& values, Order order) {
  std::vector<float> sums(values.front().size());
  std::vector<float> column(values.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    std::ranges::transform(values, column.begin(),
                           [i](const std::vector<float>& of_rank) { return of_rank[i]; });
    sums[i] = sum_in_order(column, order == Order::tree);
  }
  return sums;
}

TEST(Engine, GivesTheSameBitsInOrderHoweverItIsDone) {
  constexpr std::size_t n = 1001;
  for (const Order order : {Order::rank, Order::tree}) {
    for (const int ranks : {3, 4, 8}) {
      const std::vector<float> wanted = sums_in_order(contributions(ranks, n), order);
      const Topology topology = ranks_on_hosts(1, ranks);
      for (const int chunks : {1, 2, 5}) {
        for (const std::string name : {"direct", "weighted", "shared"}) {
          const Job job{.algorithm = name,
                        .elements = n,
                        .options = {.order = order, .chunks = chunks, .window = 3},
                        .pieces = static_cast<std::size_t>(chunks) + 1};
          EXPECT_EQ(bits(result_of(topology, job)), bits(wanted)) << name << " " << ranks;
        }
      }
    }
  }
}

TEST(Engine, GivesTheBitsOfATreeInGridsAndByDoublingAndHalving) {
  constexpr std::size_t n = 1001;
  constexpr int ranks = 8;
  const std::vector<float> wanted = sums_in_order(contributions(ranks, n), Order::tree);
  const Topology topology = ranks_on_hosts(1, ranks);
  for (const std::vector<int>& dims : {std::vector<int>{2, 4}, {4, 2}, {2, 2, 2}}) {
    const Job job{.algorithm = "grid_of_direct",
                  .elements = n,
                  .options = {.order = Order::tree, .dims = dims, .chunks = 2}};
    EXPECT_EQ(bits(result_of(topology, job)), bits(wanted));
  }
  for (const std::string name : {"doubling", "halving"}) {
    const Job job{.algorithm = name, .elements = n, .options = {.order = Order::tree, .chunks = 3}};
    EXPECT_EQ(bits(result_of(topology, job)), bits(wanted)) << name;
  }
}

// Returns the values as a message in that type carries them.
std::vector<float> rounded(const std::vector<float>& values, simd::Type type) {
  std::vector<std::uint16_t> narrow(values.size());
  std::vector<float> result(values.size());
  simd::plain_loops().narrow(values.data(), narrow.data(), values.size(), type);
  simd::plain_loops().widen(narrow.data(), result.data(), values.size(), type);
  return result;
}

// Returns the sums of the values of all ranks, each rounded before and after it is added.
std::vector<float> rounded_sums(std::vector<std::vector<float>> values, Order order,
                                simd::Type type) {
  for (std::vector<float>& of_rank : values) {
    of_rank = rounded(of_rank, type);
  }
  return rounded(sums_in_order(values, order), type);
}

// The rank that adds an element depends on slices, chunks and the algorithm; the bits must not.
TEST(Engine, GivesTheSameBitsInOrderByNarrowMessages) {
  constexpr std::size_t n = 1001;
  const Topology topology = ranks_on_hosts(1, 4);
  const std::vector<std::vector<float>> x = contributions(topology.ranks(), n);
  for (const Order order : {Order::rank, Order::tree}) {
    for (const Wire wire : {Wire::bf16, Wire::f16}) {
      const std::vector<float> wanted =
          rounded_sums(x, order, wire == Wire::bf16 ? simd::Type::bf16 : simd::Type::f16);
      for (const std::string name : {"direct", "weighted", "shuffle"}) {
        for (const int chunks : {1, 2, 3, 7}) {
          const Job job{.algorithm = name,
                        .elements = n,
                        .options = {.order = order,
                                    .wire = wire,
                                    .chunks = chunks,
                                    .window = 3,
                                    .owners = name == "shuffle" ? 2 : 0},
                        .pieces = 2};
          EXPECT_EQ(bits(result_of(topology, job)), bits(wanted)) << name << " " << chunks;
        }
      }
    }
  }
}

// In a grid, the sums of a dimension are what the ranks contribute to the next one.
TEST(Engine, RoundsInMemoryWhatMessagesWouldRoundWhereSumsHaveAnOrder) {
  constexpr std::size_t n = 1001;
  const Topology topology = ranks_on_hosts(2, 3);
  for (const Order order : {Order::rank, Order::tree}) {
    std::vector<std::vector<float>> of_hosts(2, std::vector<float>(n));
    for (std::size_t host = 0; host < of_hosts.size(); ++host) {
      for (std::size_t i = 0; i < n; ++i) {
        std::vector<float> column;
        for (int rank = 0; rank < 3; ++rank) {
          const std::vector<float> x = contribution(static_cast<int>(host) * 3 + rank, n, false);
          column.push_back(rounded({x[i]}, simd::Type::bf16)[0]);
        }
        of_hosts[host][i] = sum_in_order(column, order == Order::tree);
      }
    }
    const std::vector<float> wanted = rounded_sums(of_hosts, order, simd::Type::bf16);
    for (const std::string name : {"grid_of_direct", "shared_direct"}) {
      for (const int chunks : {1, 2, 5}) {
        const Job job{
            .algorithm = name,
            .elements = n,
            .options = {.order = order, .wire = Wire::bf16, .dims = {3, 2}, .chunks = chunks},
            .pieces = 2,
            .times = 2};
        EXPECT_EQ(bits(result_of(topology, job)), bits(wanted)) << name << " " << chunks;
      }
    }
  }
}

// Returns the root mean square of the error, relative to that of the values.
double relative_error(const std::vector<float>& is, const std::vector<float>& right) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < is.size(); ++i) {
    error += std::pow(static_cast<double>(is[i]) - right[i], 2);
    size += std::pow(static_cast<double>(right[i]), 2);
  }
  return std::sqrt(error / size);
}

TEST(Engine, RoundsNarrowMessagesOnceOnTheWayAndOnceBack) {
  const Topology topology = ranks_on_hosts(1, 4);
  const std::vector<float> right = exact(4, 5000, 0.25);
  for (const std::string name : {"direct", "weighted", "grid_of_direct"}) {
    const auto with = [&](Wire wire) {
      return result_of(topology, {.algorithm = name,
                                  .elements = 5000,
                                  .options = {.wire = wire, .dims = dims_for(name, 4), .chunks = 3},
                                  .pieces = 3,
                                  .factor = 0.25F,
                                  .whole_numbers = true,
                                  .times = 2});
    };
    EXPECT_EQ(with(Wire::f32), right);
    EXPECT_LT(relative_error(with(Wire::bf16), right), 3e-3) << name;
    EXPECT_GT(relative_error(with(Wire::bf16), right), 1e-4) << name;
    EXPECT_LT(relative_error(with(Wire::f16), right), 4e-4) << name;
  }
}

TEST(Engine, RunsManyChunksAndRingsAtOnce) {
  const Job job{.algorithm = "multi_ring",
                .elements = 30'011,
                .options = {.rings = 4, .chunks = 8, .window = 12},
                .pieces = 7,
                .whole_numbers = true,
                .times = 5};
  EXPECT_EQ(result_of(ranks_on_hosts(2, 3), job), exact(6, job.elements, 1));
}

TEST(Engine, ReportsWhatTheTransportLacks) {
  const auto errors =
      as_threads(2, {.segment_bytes = 1 << 20U, .channels = 4}, [](Transport& transport) {
        const Topology topology = ranks_on_hosts(1, 2);
        std::vector<float> outside(64);
        const std::span<float> buffer(outside);
        const auto engine = [&](const std::string& name, int chunks) {
          const RankPlan plan =
              make_plan(find(name), topology, transport.rank(), 64, {.chunks = chunks});
          Engine(transport, simd::plain_loops(), plan, {&buffer, 1});
        };
        EXPECT_EQ(tests::error_of([&] { engine("ring", 5); }),
                  "an all-reduce has 5 chunks; ranks have 4 channels");
        EXPECT_NE(tests::error_of([&] { engine("shared", 1); }).find("not addressable"),
                  std::string::npos);
      });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

}  // namespace
}  // namespace cnn::allreduce
