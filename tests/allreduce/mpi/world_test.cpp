#include "allreduce/world.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "allreduce/all_gather.h"
#include "tests/allreduce/mpi/ranks.h"

namespace cnn::allreduce {
namespace {

using tests::this_world;

TEST(World, SumsByMpi) {
  World& world = this_world();
  const auto n = static_cast<float>(world.ranks());
  std::vector<float> values{1, static_cast<float>(world.rank()), -2};
  world.all_reduce(values);
  EXPECT_EQ(values, (std::vector<float>{n, n * (n - 1) / 2, -2 * n}));
  world.polled_all_reduce(values);
  EXPECT_EQ(values, (std::vector<float>{n * n, n * n * (n - 1) / 2, -2 * n * n}));
}

TEST(World, GathersWhatEachRankGives) {
  World& world = this_world();
  for (const std::size_t length : {std::size_t{0}, std::size_t{3}, std::size_t{300'000}}) {
    const std::vector<std::string> all =
        world.gather(std::string(length, static_cast<char>('a' + world.rank())));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(world.ranks()));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      EXPECT_EQ(all[rank], std::string(length, static_cast<char>('a' + rank)));
    }
  }
}

TEST(World, NumbersItsRanksFromZero) {
  World& world = this_world();
  const std::vector<int> ranks = all_gather(world, world.rank());
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(world.ranks()));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    EXPECT_EQ(ranks[rank], static_cast<int>(rank));
  }
}

TEST(World, GathersTextsOfUnequalLengths) {
  World& world = this_world();
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank) * 1000, static_cast<char>('a' + rank));
  };
  const std::vector<std::string> all = world.gather(text_of(world.rank()));
  ASSERT_EQ(all.size(), static_cast<std::size_t>(world.ranks()));
  for (int rank = 0; rank < world.ranks(); ++rank) {
    EXPECT_EQ(all[static_cast<std::size_t>(rank)], text_of(rank));
  }
}

// MPI has no address of a peer's memory, so an exchange in memory is never planned over it.
TEST(World, ConnectsByMessagesWithTheChannelsAskedFor) {
  World& world = this_world();
  const std::unique_ptr<Transport> transport = world.connect(5);
  EXPECT_EQ(transport->rank(), world.rank());
  EXPECT_EQ(transport->ranks(), world.ranks());
  EXPECT_EQ(transport->channels(), 5U);
  const Bytes memory = transport->allocate_shared(64);
  for (int rank = 0; rank < world.ranks(); ++rank) {
    const bool own = rank == world.rank();
    EXPECT_EQ(transport->peer_address(rank, memory.data()) != nullptr, own) << rank;
  }
}

TEST(World, SeesNoFailureOfHealthyPeers) { EXPECT_NO_THROW(this_world().check_peers()); }

}  // namespace
}  // namespace cnn::allreduce
