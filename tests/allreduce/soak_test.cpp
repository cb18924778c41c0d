#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/engine.h"
#include "runtime/error.h"
#include "tests/allreduce/forked_ranks.h"
#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

constexpr int soak_ranks = 4;
constexpr std::size_t max_elements = 6000;
// Bounds the growth of a process after its first operations.
constexpr std::size_t max_kib_more = 8192;
constexpr SharedMemoryOptions soak_segments{.segment_bytes = std::size_t{1} << 26U};

struct SoakLength {
  int reductions = 0;  // number of different reductions, each with a size of its own
  int operations = 0;  // number of runs, each of which repeats one of the reductions
};

// An algorithm with its options and its buffer size.
struct SoakReduction {
  const Algorithm* algorithm = nullptr;
  Options options;
  std::size_t elements = 0;
};

std::optional<SoakReduction> draw_reduction(std::mt19937& random) {
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::span<const Algorithm> all = catalog();
  SoakReduction reduction{.algorithm = &all[below(all.size())], .elements = below(max_elements)};
  reduction.options.order = static_cast<Order>(below(3));
  reduction.options.wire = static_cast<Wire>(below(3));
  reduction.options.chunks = static_cast<int>(1 + below(4));
  reduction.options.window = static_cast<int>(1 + below(4));
  reduction.options.rings =
      reduction.algorithm->name == "multi_ring" ? static_cast<int>(1 + below(3)) : 1;
  if (reduction.algorithm->grid) {
    reduction.options.dims = below(2) == 0 ? std::vector<int>{2, 2} : std::vector<int>{soak_ranks};
  }
  try {
    make_plan(*reduction.algorithm, ranks_on_hosts(1, soak_ranks), 0, reduction.elements,
              reduction.options);
    return reduction;
  } catch (const Error&) {  // the algorithm does not support this order or wire type
    return std::nullopt;
  }
}

// All ranks draw the same reductions, because they pass the same random state.
std::vector<SoakReduction> draw_reductions(int count, std::mt19937& random) {
  std::vector<SoakReduction> reductions;
  while (reductions.size() < static_cast<std::size_t>(count)) {
    if (const std::optional<SoakReduction> reduction = draw_reduction(random)) {
      reductions.push_back(*reduction);
    }
  }
  return reductions;
}

// Returns an integer so small that sums are exact in 16 bits.
float soak_number(int rank, int operation, std::size_t element) {
  const std::size_t mixed = element * 2654435761U + static_cast<std::size_t>(rank) * 40503U +
                            static_cast<std::size_t>(operation) * 69069U;
  return static_cast<float>(static_cast<int>(mixed >> 7U & 0xfU) - 8);
}

std::uint64_t hash_with(std::uint64_t hash, float value) {
  return (hash ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(value))) * 0x100000001b3U;
}

struct Holdings {
  std::size_t resident_kib = 0;
  std::ptrdiff_t descriptors = 0;
};

std::size_t resident_kib() {
  std::size_t kib = 0;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") {
      status >> kib;
    }
  }
  return kib;
}

// Has one descriptor of its own open at any time: ranks that are threads count those of the others.
Holdings own_holdings() {
  const std::size_t kib = resident_kib();
  return {.resident_kib = kib,
          .descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {})};
}

class SoakRank {
 public:
  SoakRank(Transport& transport, const std::vector<SoakReduction>& reductions)
      : rank_(transport.rank()) {
    const Bytes memory = transport.allocate_shared(max_elements * sizeof(float));
    buffer_ = {reinterpret_cast<float*>(memory.data()), max_elements};
    for (const SoakReduction& reduction : reductions) {
      const std::span<float> all = buffer_.first(reduction.elements);
      const std::vector<std::span<float>> pieces{all.first(reduction.elements / 3),
                                                 all.subspan(reduction.elements / 3)};
      engines_.push_back(
          std::make_unique<Engine>(transport, *tests::usable_loops().back(),
                                   make_plan(*reduction.algorithm, ranks_on_hosts(1, soak_ranks),
                                             rank_, reduction.elements, reduction.options),
                                   pieces));
    }
  }

  // Throws Error if the sum differs from that of plain loops.
  void reduce(const SoakReduction& reduction, std::size_t engine, int operation) {
    std::uint64_t expected = 0, is = 0;
    for (std::size_t i = 0; i < reduction.elements; ++i) {
      float sum = 0;
      for (int rank = 0; rank < soak_ranks; ++rank) {
        sum += soak_number(rank, operation, i);
      }
      expected = hash_with(expected, sum);
      buffer_[i] = soak_number(rank_, operation, i);
    }
    engines_[engine]->run(1);
    for (const float value : buffer_.first(reduction.elements)) {
      is = hash_with(is, value);
    }
    check(is == expected, "operation " + std::to_string(operation) + ", " +
                              std::string(reduction.algorithm->name) + " of " +
                              std::to_string(reduction.elements) + ", is wrong on rank " +
                              std::to_string(rank_));
  }

 private:
  int rank_;
  std::span<float> buffer_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

void soak(Transport& transport, const SoakLength& length) {
  std::mt19937 random(7);
  const std::vector<SoakReduction> reductions = draw_reductions(length.reductions, random);
  SoakRank rank(transport, reductions);
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    rank.reduce(reductions[i], i, 0);
  }
  const Holdings before = own_holdings();
  for (int operation = 0; operation < length.operations; ++operation) {
    const std::size_t reduction = random() % reductions.size();
    rank.reduce(reductions[reduction], reduction, operation);
  }
  const Holdings after = own_holdings();
  check(after.resident_kib <= before.resident_kib + max_kib_more,
        "memory grew from " + std::to_string(before.resident_kib) + " to " +
            std::to_string(after.resident_kib) + " KiB");
  check(after.descriptors <= before.descriptors + soak_ranks,  // other ranks may be counting theirs
        "descriptors grew from " + std::to_string(before.descriptors) + " to " +
            std::to_string(after.descriptors));
}

void soak_threads(const SoakLength& length) {
  const auto errors = tests::as_threads(soak_ranks, soak_segments,
                                        [&](Transport& transport) { soak(transport, length); });
  EXPECT_EQ(errors, std::vector<std::string>(soak_ranks));
}

void soak_processes(const SoakLength& length) {
  const tests::ForkedRun run = tests::as_processes(soak_ranks, soak_segments, [&](Transport& t) {
    soak(t, length);
    return 0;
  });
  for (const tests::RankEnd& end : run.ranks) {
    EXPECT_EQ(end.status, 0) << end.error;
  }
}

constexpr SoakLength short_soak{.reductions = 40, .operations = 160};
constexpr SoakLength long_soak{.reductions = 250, .operations = 10'000};

TEST(Soak, IsCorrectAndKeepsItsSizeWithThreads) { soak_threads(short_soak); }
TEST(Soak, IsCorrectAndKeepsItsSizeWithProcesses) { soak_processes(short_soak); }
TEST(SlowSoak, IsCorrectAndKeepsItsSizeWithThreads) { soak_threads(long_soak); }
TEST(SlowSoak, IsCorrectAndKeepsItsSizeWithProcesses) { soak_processes(long_soak); }

}  // namespace
}  // namespace cnn::allreduce
