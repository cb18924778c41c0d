#include "allreduce/connection.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace cnn::allreduce {
namespace {

// Records the calls of a transport between hosts, which delivers nothing.
struct RemoteCalls {
  std::vector<std::pair<int, std::size_t>> sends, receives;  // pairs of rank and channel
  std::vector<std::vector<int>> arrivals;
  std::vector<int> awaited;
  bool is_lost = false;
};

class RemoteMessages final : public Transport {
 public:
  RemoteMessages(int rank, int ranks, std::size_t channels, RemoteCalls& calls)
      : rank_(rank), ranks_(ranks), channels_(channels), calls_(calls) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::size_t channels() const override { return channels_; }
  Bytes allocate_shared(std::size_t bytes) override { return Bytes(memory_).first(bytes); }
  std::byte* peer_address(int /*rank*/, std::byte* /*own*/) override { return nullptr; }
  void send(int to, std::size_t channel, std::span<const Bytes> /*pieces*/) override {
    if (calls_.is_lost) {
      throw PeerLost(to, "no answer");
    }
    calls_.sends.emplace_back(to, channel);
  }
  bool sent(int /*to*/, std::size_t /*channel*/) override { return true; }
  void receive(int from, std::size_t channel, std::span<const Bytes> /*at_sender*/,
               std::span<const Bytes> /*to*/) override {
    calls_.receives.emplace_back(from, channel);
  }
  bool received(int /*from*/, std::size_t /*channel*/) override { return true; }
  void arrive(std::span<const int> group, std::size_t /*channel*/) override {
    calls_.arrivals.emplace_back(group.begin(), group.end());
  }
  bool arrived(std::span<const int> /*group*/, std::size_t /*channel*/) override { return true; }
  void idle(int waits_for) override { calls_.awaited.push_back(waits_for); }
  void busy() override {}
  void leave(std::optional<int> /*lost*/) override {}

 private:
  int rank_, ranks_;
  std::size_t channels_;
  RemoteCalls& calls_;
  std::array<std::byte, 4096> memory_{};
};

// A world whose ranks are threads of this process and gather texts in its memory.
struct ThreadsOfWorld {
  explicit ThreadsOfWorld(int count)
      : texts(static_cast<std::size_t>(count)),
        all(count),
        calls(texts.size()),
        aborts(texts.size()),
        connected(texts.size()) {}

  std::vector<std::string> texts;
  std::barrier<> all;
  std::vector<RemoteCalls> calls;        // calls of each rank
  std::vector<std::vector<int>> aborts;  // culprits that each rank named
  std::vector<std::size_t> connected;    // channels that each rank asked for; 0 if it never asked
};

class ThreadWorld final : public World {
 public:
  ThreadWorld(ThreadsOfWorld& threads, int rank) : threads_(threads), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(threads_.texts.size()); }
  std::vector<std::string> gather(std::string_view mine) override {
    threads_.texts[place()] = mine;
    threads_.all.arrive_and_wait();
    std::vector<std::string> all = threads_.texts;
    threads_.all.arrive_and_wait();
    return all;
  }
  std::unique_ptr<Transport> connect(std::size_t channels) override {
    threads_.connected[place()] = channels;
    return std::make_unique<RemoteMessages>(rank_, ranks(), channels, threads_.calls[place()]);
  }
  void all_reduce(std::span<float> /*values*/) override {}
  void polled_all_reduce(std::span<float> /*values*/) override {}
  void check_peers() override {}
  void abort(int culprit, std::string_view /*why*/) noexcept override {
    threads_.aborts[place()].push_back(culprit);
  }
  bool rank_0_reports(std::string_view /*why*/) noexcept override { return false; }
  void finish() override {}

 private:
  std::size_t place() const { return static_cast<std::size_t>(rank_); }

  ThreadsOfWorld& threads_;
  int rank_;
};

// Runs a function as each rank. A rank that throws ends the test, because others may wait for it.
void as_ranks_of(ThreadsOfWorld& threads, const std::function<void(World&)>& work) {
  std::vector<std::jthread> running;
  running.reserve(threads.texts.size());
  for (int rank = 0; rank < static_cast<int>(threads.texts.size()); ++rank) {
    running.emplace_back([&threads, &work, rank] {
      ThreadWorld world(threads, rank);
      work(world);
    });
  }
}

constexpr SharedMemoryOptions small_memory{.segment_bytes = 1 << 16U, .channels = 4};

RankPlacement placed(const std::string& memory, std::vector<int> nodes = {}) {
  return {.host = "h",
          .kernel = "k",
          .memory = memory,
          .process = ::getpid(),
          .nodes = std::move(nodes)};
}

TEST(TopologyOf, NumbersHostsInTheOrderOfTheirFirstRanks) {
  const std::vector<RankPlacement> placements{placed("b"), placed("a"), placed("b"), placed("c")};
  const Topology topology = topology_of(placements);
  EXPECT_EQ(topology.host_of, (std::vector{0, 1, 0, 2}));
  EXPECT_TRUE(topology.numa_node_of.empty());
  EXPECT_TRUE(topology.link.empty());
}

TEST(TopologyOf, GivesAllRanksOfAProcessItsHost) {
  const std::vector<RankPlacement> placements{placed("b"), placed("a")};
  EXPECT_EQ(topology_of(placements, 3).host_of, (std::vector{0, 0, 0, 1, 1, 1}));
}

TEST(TopologyOf, TakesTheNodesThatProcessesKnow) {
  const std::vector<RankPlacement> known{placed("a", {0, 1}), placed("a", {1, 0})};
  EXPECT_EQ(topology_of(known, 2).numa_node_of, (std::vector{0, 1, 1, 0}));
  const std::vector<RankPlacement> partly{placed("a", {0, 1}), placed("a", {1})};
  EXPECT_TRUE(topology_of(partly, 2).numa_node_of.empty()) << "the node of one rank is unknown";
}

TEST(GatherPlacements, GivesEveryRankThoseOfAll) {
  ThreadsOfWorld threads(3);
  std::vector<std::vector<RankPlacement>> found(3);
  as_ranks_of(threads, [&](World& world) {
    found[static_cast<std::size_t>(world.rank())] = gather_placements(world, false);
  });
  for (const std::vector<RankPlacement>& placements : found) {
    ASSERT_EQ(placements.size(), 3U);
    for (const RankPlacement& placement : placements) {
      EXPECT_EQ(placement.process, ::getpid());
      EXPECT_FALSE(placement.host.empty());
      EXPECT_FALSE(placement.kernel.empty());
      EXPECT_EQ(placement.memory, found[0][0].memory) << "both ranks run in one process";
    }
  }
}

TEST(GatherPlacements, CanTreatEachRankAsAHostOfItsOwn) {
  ThreadsOfWorld threads(3);
  std::vector<int> hosts;
  as_ranks_of(threads, [&](World& world) {
    const std::vector<RankPlacement> placements = gather_placements(world, true);
    if (world.rank() == 0) {
      hosts = topology_of(placements).host_of;
    }
  });
  EXPECT_EQ(hosts, (std::vector{0, 1, 2}));
}

TEST(Connection, SharesMemoryAmongTheRanksOfAHostAndAsksForNoMessages) {
  ThreadsOfWorld threads(2);
  const std::vector<RankPlacement> placements{placed("a"), placed("a")};
  std::array<std::byte, 3> received{};
  as_ranks_of(threads, [&](World& world) {
    Connection connection(world, placements, small_memory);
    Transport& transport = connection.transport();
    EXPECT_EQ(transport.rank(), world.rank());
    EXPECT_EQ(transport.ranks(), 2);
    const Bytes memory = transport.allocate_shared(3);
    EXPECT_NE(transport.peer_address(1 - world.rank(), memory.data()), nullptr);
    if (world.rank() == 0) {
      memory[2] = std::byte{42};
      transport.send(1, 0, {&memory, 1});
      while (!transport.sent(1, 0)) {
        transport.idle(1);
      }
    } else {
      const Bytes to(received);
      transport.receive(0, 0, {&memory, 1}, {&to, 1});
      while (!transport.received(0, 0)) {
        transport.idle(0);
      }
    }
    transport.busy();
    world.gather({});
  });
  EXPECT_EQ(received[2], std::byte{42});
  EXPECT_EQ(threads.connected, (std::vector<std::size_t>{0, 0}));
}

TEST(Connection, SendsMessagesWhereNoMemoryIsShared) {
  ThreadsOfWorld threads(2);
  const std::vector<RankPlacement> placements{placed("a"), placed("b")};
  as_ranks_of(threads, [&](World& world) {
    Connection connection(world, placements, small_memory);
    Transport& transport = connection.transport();
    EXPECT_EQ(transport.rank(), world.rank());
    EXPECT_EQ(transport.channels(), 4U);
    const Bytes memory = transport.allocate_shared(8);
    EXPECT_EQ(transport.peer_address(1 - world.rank(), memory.data()), nullptr);
    transport.send(1 - world.rank(), 3, {&memory, 1});
  });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::pair<int, std::size_t> sent{1 - static_cast<int>(rank), 3};
    EXPECT_EQ(threads.calls[rank].sends, std::vector{sent});
  }
}

TEST(Connection, HasChannelsForEachPairOfRanksOfTwoProcesses) {
  ThreadsOfWorld threads(2);
  const std::vector<RankPlacement> placements{placed("a"), placed("b")};
  as_ranks_of(threads, [&](World& world) {
    Connection connection(world, placements, small_memory, 2);
    std::jthread other([&] { connection.join(1); });
    EXPECT_EQ(connection.join(0)->ranks(), 4);
    other.join();
  });
  EXPECT_EQ(threads.connected, (std::vector<std::size_t>{16, 16})) << "4 for each of 2 x 2 pairs";
}

// Ranks 0 and 2 share a host; rank 1 is on another one.
class ConnectionOfTwoHosts : public ::testing::Test {
 public:
  // Calls the function with the transport of rank 0 while the other ranks answer its all-gathers.
  void as_rank_0(const std::function<void(Transport&, World&)>& work) {
    const std::vector<RankPlacement> placements{placed("a"), placed("b"), placed("a")};
    as_ranks_of(threads, [&](World& world) {
      Connection connection(world, placements, small_memory);
      memory_of[static_cast<std::size_t>(world.rank())] =
          connection.transport().allocate_shared(64).data();
      world.gather({});
      if (world.rank() == 0) {
        work(connection.transport(), world);
      }
      world.gather({});
    });
  }
  RemoteCalls& calls() { return threads.calls[0]; }

  ThreadsOfWorld threads{3};
  std::array<std::byte*, 3> memory_of{};
};

TEST_F(ConnectionOfTwoHosts, NumbersRanksAsTheWorldDoes) {
  as_rank_0([](Transport& transport, World& /*world*/) {
    EXPECT_EQ(transport.rank(), 0);
    EXPECT_EQ(transport.ranks(), 3);
  });
}

TEST_F(ConnectionOfTwoHosts, AddressesTheMemoryOfItsOwnHostAlone) {
  as_rank_0([&](Transport& transport, World& /*world*/) {
    EXPECT_NE(transport.peer_address(2, memory_of[0]), nullptr);
    EXPECT_EQ(transport.peer_address(1, memory_of[0]), nullptr);
  });
}

TEST_F(ConnectionOfTwoHosts, RoutesMessagesByTheHostOfThePeer) {
  as_rank_0([&](Transport& transport, World& /*world*/) {
    const Bytes bytes(memory_of[0], 8);
    transport.send(1, 2, {&bytes, 1});
    EXPECT_EQ(calls().sends, (std::vector<std::pair<int, std::size_t>>{{1, 2}}));
    transport.send(2, 2, {&bytes, 1});
    EXPECT_EQ(calls().sends.size(), 1U) << "rank 2 copies it from memory";
    EXPECT_FALSE(transport.sent(2, 2));
    transport.receive(1, 3, {&bytes, 1}, {&bytes, 1});
    transport.receive(2, 3, {&bytes, 1}, {&bytes, 1});
    EXPECT_EQ(calls().receives, (std::vector<std::pair<int, std::size_t>>{{1, 3}}));
  });
}

TEST_F(ConnectionOfTwoHosts, DividesABarrierAndAWaitAmongBothTransports) {
  as_rank_0([&](Transport& transport, World& /*world*/) {
    const std::vector<int> group{0, 1, 2};
    transport.arrive(group, 0);
    EXPECT_EQ(calls().arrivals, (std::vector<std::vector<int>>{{1}}));
    EXPECT_FALSE(transport.arrived(group, 0)) << "rank 2 has not arrived";
    const int remote = 1;
    EXPECT_TRUE(transport.arrived({&remote, 1}, 0));
    transport.idle(1);
    transport.idle(2);
    transport.idle(any_rank);
    transport.busy();
    EXPECT_EQ(calls().awaited, (std::vector{1, 2, any_rank}));
  });
}

TEST_F(ConnectionOfTwoHosts, TellsBothHostsOfALostRank) {
  as_rank_0([&](Transport& transport, World& /*world*/) {
    calls().is_lost = true;
    const Bytes bytes(memory_of[0], 8);
    try {
      transport.send(1, 0, {&bytes, 1});
      ADD_FAILURE() << "the loss was not reported";
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), 1);
    }
    EXPECT_EQ(threads.aborts[0], std::vector{1});
  });
}

}  // namespace
}  // namespace cnn::allreduce
