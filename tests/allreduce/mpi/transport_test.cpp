#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/connection.h"
#include "tests/allreduce/mpi/ranks.h"
#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

using tests::Job;
using tests::this_world;

constexpr SharedMemoryOptions small_segments{.segment_bytes = std::size_t{1} << 26U};

// Returns rank 0's result of the same reduction among threads of this process.
std::vector<float> by_threads(const Topology& topology, const Job& job) {
  std::vector<float> of_first;
  tests::as_threads(topology.ranks(), small_segments, [&](Transport& transport) {
    const std::vector<float> result = tests::reduce(transport, topology, job);
    if (transport.rank() == 0) {
      of_first = result;
    }
  });
  return of_first;
}

std::vector<Job> jobs_of(int ranks) {
  std::vector<Job> jobs;
  for (const char* const name : {"ring", "direct", "tree", "doubling", "halving", "weighted"}) {
    for (const std::size_t elements : {1U, 3U, 1023U, 100'003U}) {
      jobs.push_back({.algorithm = name, .elements = elements, .pieces = 3, .times = 2});
      jobs.back().options.chunks = 4;
    }
  }
  jobs.push_back({.algorithm = "direct",
                  .elements = 5000,
                  .options = {.wire = Wire::bf16, .chunks = 2},
                  .pieces = 2,
                  .factor = 0.5F});
  jobs.push_back({.algorithm = "grid_of_direct",
                  .elements = 30'000,
                  .options = {.order = Order::rank,
                              .dims = ranks == 4 ? std::vector<int>{2, 2} : std::vector{ranks},
                              .chunks = 3}});
  return jobs;
}

void expect_the_bits_of_threads(bool apart) {
  World& world = this_world();
  const std::vector<RankPlacement> placements = gather_placements(world, apart);
  const Topology topology = topology_of(placements);
  Connection connection(world, placements, small_segments);
  for (const Job& job : jobs_of(world.ranks())) {
    EXPECT_EQ(tests::reduce(connection.transport(), topology, job), by_threads(topology, job))
        << job.algorithm << " of " << job.elements << " elements";
  }
}

TEST(Connection, HasTheBitsOfThreadsByMessages) { expect_the_bits_of_threads(/*apart=*/true); }

TEST(Connection, HasTheBitsOfThreadsBySharedMemory) { expect_the_bits_of_threads(/*apart=*/false); }

// is_away tells whether a rank is on the second of two hosts.
void expect_the_bits_of_threads_on_two_hosts(bool (*is_away)(std::size_t rank)) {
  World& world = this_world();
  std::vector<RankPlacement> placements = gather_placements(world, /*apart=*/false);
  for (std::size_t rank = 0; rank < placements.size(); ++rank) {
    placements[rank].memory += is_away(rank) ? " of another host" : "";
  }
  const Topology topology = topology_of(placements);
  Connection connection(world, placements, small_segments);
  std::vector<Job> jobs = jobs_of(world.ranks());
  if (world.ranks() == 4) {
    for (const char* const name : {"shared_rings", "shared_direct"}) {
      for (const std::size_t elements : {1U, 1023U, 100'003U}) {
        jobs.push_back({.algorithm = name,
                        .elements = elements,
                        .options = {.dims = {2, 2}, .chunks = 4, .window = 2},
                        .pieces = 3,
                        .factor = 0.25F,
                        .times = 3});
      }
    }
  }
  for (const Job& job : jobs) {
    EXPECT_EQ(tests::reduce(connection.transport(), topology, job), by_threads(topology, job))
        << job.algorithm << " of " << job.elements << " elements";
  }
}

TEST(Connection, HasTheBitsOfThreadsByMemoryAndMessages) {
  expect_the_bits_of_threads_on_two_hosts([](std::size_t rank) { return rank >= 2; });
}

TEST(Connection, HasTheBitsOfThreadsForRanksDealtRoundRobin) {
  expect_the_bits_of_threads_on_two_hosts([](std::size_t rank) { return rank % 2 == 1; });
}

TEST(Connection, SeesMemoryOfThisHostOnly) {
  World& world = this_world();
  for (const bool apart : {true, false}) {
    const std::vector<RankPlacement> placements = gather_placements(world, apart);
    Connection connection(world, placements, small_segments);
    Transport& transport = connection.transport();
    const Bytes memory = transport.allocate_shared(100);
    for (int rank = 0; rank < world.ranks(); ++rank) {
      const bool seen = transport.peer_address(rank, memory.data()) != nullptr;
      EXPECT_EQ(seen, rank == world.rank() || !apart);
    }
    EXPECT_EQ(topology_of(placements).host_of.back(), apart ? world.ranks() - 1 : 0);
  }
}

}  // namespace
}  // namespace cnn::allreduce
