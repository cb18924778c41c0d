#include "allreduce/fault.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <gtest/gtest.h>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "allreduce/communicator.h"
#include "allreduce/repeated_all_gather.h"
#include "tests/allreduce/forked_ranks.h"
#include "tests/allreduce/usable_loops.h"

namespace cnn::allreduce {
namespace {

using namespace std::chrono_literals;
using tests::as_processes;
using tests::ForkedRun;
using tests::RankEnd;

constexpr int wrong_sum = 3;  // exit status of a rank that has seen a wrong sum
constexpr int steps_of_run = 6;
constexpr std::size_t buckets_of_run = 3;

// A run in which one rank has an injected fault.
struct FaultyRun {
  int ranks = 2;
  std::size_t elements = 0;
  std::string algorithm;
  int chunks = 1;
  Fault fault;

  std::string text() const {
    return std::to_string(ranks) + " ranks, " + algorithm + " of " + std::to_string(elements) +
           " in " + std::to_string(chunks) + " chunks; rank " + std::to_string(fault.rank) +
           " step " + std::to_string(fault.step) + " bucket " + std::to_string(fault.bucket) +
           " after " + std::to_string(fault.after) + " kind " +
           std::to_string(static_cast<int>(fault.kind));
  }
};

FaultyRun random_run(std::mt19937& random) {
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<std::string> algorithms{"ring",   "direct",     "doubling", "halving", "tree",
                                            "shared", "multi_ring", "weighted", "shuffle"};
  FaultyRun run{.ranks = static_cast<int>(2 + below(4)),
                .elements = 1 + below(3000),
                .algorithm = algorithms[below(algorithms.size())],
                .chunks = static_cast<int>(1 + below(3))};
  run.fault.kind = static_cast<Fault::Kind>(below(5));
  run.fault.rank = static_cast<int>(below(static_cast<std::size_t>(run.ranks)));
  run.fault.bucket = below(buckets_of_run);
  run.fault.step = 1 + below(steps_of_run);
  run.fault.after = below(24);
  run.fault.delay = std::chrono::milliseconds(1 + below(20));
  return run;
}

// Runs one rank: a few steps of a few buckets.
int steps_of_buckets(Transport& transport, const FaultyRun& run) {
  Settings settings{.topology = ranks_on_hosts(1, run.ranks)};
  settings.rules = {{.algorithm = &find(run.algorithm), .options = {.chunks = run.chunks}}};
  settings.fault = run.fault;
  BucketCommunicator communicator(transport, *tests::usable_loops().back(), settings);
  const Bytes memory = transport.allocate_shared(buckets_of_run * run.elements * sizeof(float));
  const std::span<float> all(reinterpret_cast<float*>(memory.data()),
                             buckets_of_run * run.elements);
  const int whole_sum = run.ranks * (run.ranks + 1) / 2;
  const auto sum = static_cast<float>(whole_sum);
  bool right = true;
  for (int step = 0; step < steps_of_run; ++step) {
    for (std::size_t bucket = 0; bucket < buckets_of_run; ++bucket) {
      const std::span<float> mine = all.subspan(bucket * run.elements, run.elements);
      std::ranges::fill(mine, static_cast<float>(transport.rank() + 1));
      communicator.all_reduce(bucket, {&mine, 1}, 1);
      right = right && std::ranges::all_of(mine, [sum](float x) { return x == sum; });
    }
  }
  return right ? 0 : wrong_sum;
}

// Returns how a rank must end: by the fault itself or because it lost the faulty rank.
RankEnd expected_end(const Fault& fault, int rank) {
  const bool own = rank == fault.rank;
  switch (fault.kind) {
    case Fault::Kind::exit:
      return own ? RankEnd{.status = 1} : RankEnd{.status = 75, .culprit = fault.rank};
    case Fault::Kind::kill:
      return own ? RankEnd{.status = 128 + SIGKILL} : RankEnd{.status = 75, .culprit = fault.rank};
    case Fault::Kind::stop:
      return own ? RankEnd{.status = 128 + SIGKILL, .was_stopped = true}
                 : RankEnd{.status = 75, .culprit = fault.rank};
    case Fault::Kind::corrupt:
      return {.status = own ? wrong_sum : 0};
    case Fault::Kind::delay:
      break;
  }
  return {};
}

// Returns whether a rank may end well although another rank fails in its last step, because it
// waits for nothing more.
bool may_end_well(const FaultyRun& run, const RankEnd& end) {
  return end.status == 0 && run.fault.bucket == buckets_of_run - 1 &&
         run.fault.step == steps_of_run;
}

// Returns the seconds until all ranks have named the culprit.
double expect_the_culprit(const FaultyRun& run) {
  const ForkedRun ended =
      as_processes(run.ranks, {.segment_bytes = 1 << 20U, .heartbeat_timeout = 150ms},
                   [&](Transport& transport) { return steps_of_buckets(transport, run); });
  EXPECT_FALSE(ended.hung) << run.text();
  for (int rank = 0; rank < run.ranks; ++rank) {
    const RankEnd& end = ended.ranks[static_cast<std::size_t>(rank)];
    const RankEnd expected = expected_end(run.fault, rank);
    if (rank != run.fault.rank && may_end_well(run, end)) {
      continue;
    }
    EXPECT_EQ(end.status, expected.status) << run.text() << "\nrank " << rank << ": " << end.error;
    EXPECT_EQ(end.culprit, expected.culprit)
        << run.text() << "\nrank " << rank << ": " << end.error;
    EXPECT_EQ(end.was_stopped, expected.was_stopped) << run.text() << "\nrank " << rank;
  }
  const bool dies = run.fault.kind == Fault::Kind::exit || run.fault.kind == Fault::Kind::kill;
  return dies ? ended.naming_seconds : 0;
}

void expect_culprits_of(int faults, unsigned seed) {
  std::mt19937 random(seed);
  double slowest = 0;
  for (int i = 0; i < faults && !testing::Test::HasFailure(); ++i) {
    slowest = std::max(slowest, expect_the_culprit(random_run(random)));
  }
  std::cout << faults << " faults; a dead rank was named within " << 1000 * slowest << " ms\n";
}

TEST(LongFaults, NameTheRightCulprit) { expect_culprits_of(160, 1); }

TEST(SlowFaults, NameTheRightCulprit) { expect_culprits_of(800, 2); }

// With this many ranks, no rank watches the processes of all others.
TEST(Faults, AreNamedByAllOfManyRanks) {
  constexpr int ranks = 80, killed = 37;
  const ForkedRun run = as_processes(ranks, {.segment_bytes = 1 << 20U, .heartbeat_timeout = 10s},
                                     [](Transport& transport) {
                                       RepeatedAllGather all_gather(transport, 8);
                                       all_gather.run();
                                       if (transport.rank() == killed) {
                                         ::raise(SIGKILL);
                                       }
                                       all_gather.run();
                                       return 0;
                                     });
  EXPECT_FALSE(run.hung);
  for (int rank = 0; rank < ranks; ++rank) {
    const RankEnd& end = run.ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(end.status, rank == killed ? 128 + SIGKILL : 75) << rank << ": " << end.error;
    EXPECT_EQ(end.culprit, rank == killed ? -1 : killed) << rank << ": " << end.error;
  }
}

}  // namespace
}  // namespace cnn::allreduce
