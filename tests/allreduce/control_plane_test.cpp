// Counts what ranks tell one another beside gradients: messages, bytes and peers of each rank grow
// with the logarithm of the ranks. Counts, not times: they are the same on every machine.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "allreduce/calibrate.h"
#include "allreduce/communicator.h"
#include "allreduce/forwarding_transport.h"
#include "allreduce/gathering.h"
#include "tests/allreduce/forked_ranks.h"
#include "tests/allreduce/ranks.h"

namespace cnn::allreduce {
namespace {

class CountingTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  void send(int to, std::size_t channel, std::span<const Bytes> pieces) override {
    ++messages_;
    for (const Bytes& piece : pieces) {
      bytes_ += piece.size();
    }
    peers_.insert(to);
    ForwardingTransport::send(to, channel, pieces);
  }

  std::size_t messages() const { return messages_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t peers() const { return peers_.size(); }

 private:
  std::size_t messages_ = 0, bytes_ = 0;
  std::set<int> peers_;
};

struct Counts {
  std::size_t messages = 0, bytes = 0, peers = 0;  // the most of a rank
};

constexpr PeerMemoryOptions small_rooms{.room = std::size_t{1} << 22U};

Counts counted(int ranks, const std::function<void(Transport&)>& work) {
  std::vector<Counts> of(static_cast<std::size_t>(ranks));
  const auto errors = tests::as_threads(ranks, small_rooms, [&](Transport& transport) {
    CountingTransport counting(transport);
    work(counting);
    of[static_cast<std::size_t>(transport.rank())] = {counting.messages(), counting.bytes(),
                                                      counting.peers()};
  });
  EXPECT_EQ(errors, std::vector<std::string>(errors.size()));
  Counts most;
  for (const Counts& counts : of) {
    most = {std::max(most.messages, counts.messages), std::max(most.bytes, counts.bytes),
            std::max(most.peers, counts.peers)};
  }
  return most;
}

std::size_t rounds(int ranks) { return std::bit_width(static_cast<unsigned>(ranks) - 1); }

TEST(ControlPlane, GathersInALogarithmOfRounds) {
  for (const int ranks : {2, 7, 32}) {
    const Counts counts = counted(ranks, [](Transport& transport) {
      Gathering gathering(transport, 24);
      gathering.run();
    });
    EXPECT_EQ(counts.messages, rounds(ranks)) << ranks << " ranks";
    EXPECT_EQ(counts.bytes, 24U * static_cast<unsigned>(ranks - 1)) << ranks << " ranks";
  }
}

TEST(ControlPlane, BroadcastsInALogarithmOfRounds) {
  for (const int ranks : {2, 7, 32}) {
    const Counts counts = counted(ranks, [](Transport& transport) {
      Broadcast broadcast(transport, 64);
      std::array<std::byte, 40> values{};
      broadcast.run(values);
    });
    EXPECT_LE(counts.messages, rounds(ranks)) << ranks << " ranks";
  }
}

TEST(ControlPlane, AgreesOnLinksInTwoExchanges) {
  for (const int ranks : {2, 7, 32}) {
    const Topology topology = ranks_on_hosts(ranks, 1);
    const Counts counts = counted(ranks, [&](Transport& transport) {
      LinkSpeeds speeds{{.latency = 1.0 + transport.rank()}, {}};
      if (transport.rank() == 0) {
        speeds.of_rank.assign(topology.host_of.size(), 0.5);
        speeds.of_rank.front() = 1;
      }
      const LinkSpeeds all = links_of_first(transport, topology, speeds);
      EXPECT_EQ(all.links.latency, 1.0);
      ASSERT_EQ(all.of_rank.size(), topology.host_of.size());
      EXPECT_EQ(all.of_rank.front(), 1.0);
      EXPECT_EQ(all.of_rank.back(), 0.5);
    });
    EXPECT_LE(counts.messages, 2 * rounds(ranks) + 2) << ranks << " ranks";
  }
}

// Open MPI makes a connection to each rank that is talked to.
TEST(ControlPlane, OfARingTouchesALogarithmOfPeers) {
  for (const int ranks : {2, 7, 32}) {
    const Counts counts = counted(ranks, [&](Transport& transport) {
      BucketCommunicator communicator(
          transport, *tests::usable_loops().back(),
          {.topology = ranks_on_hosts(ranks, 1), .rules = {{.algorithm = &find("ring")}}});
      Gathering gathering(transport, 24);
      const Bytes room = transport.room(4000);
      const std::vector<std::span<float>> bucket{{reinterpret_cast<float*>(room.data()), 1000}};
      for (int step = 0; step < 3; ++step) {
        communicator.all_reduce(0, bucket, 1);
        gathering.run();
      }
    });
    EXPECT_LE(counts.peers, 3 * rounds(ranks) + 2) << ranks << " ranks";
  }
}

// All of a run's start in processes, and what one of them takes of memory that is its own.
void start(int ranks) {
  const auto start = std::chrono::steady_clock::now();
  const tests::ForkedRun run =
      tests::as_processes(ranks, small_rooms, [ranks](Transport& transport) {
        const Topology topology = ranks_on_hosts(1, ranks);
        const simd::Loops& loops = *tests::usable_loops().back();
        const LinkSpeeds speeds = links_of_first(transport, topology, {});
        BucketCommunicator communicator(transport, loops,
                                        {.topology = topology,
                                         .links = speeds.links,
                                         .rules = {{.algorithm = &find("doubling")}}});
        Gathering gathering(transport, 24);
        const Bytes room = transport.room(100'000);
        const std::vector<std::span<float>> bucket{{reinterpret_cast<float*>(room.data()), 25'000}};
        std::ranges::fill(bucket.front(), 1.0F);
        communicator.all_reduce(0, bucket, 1);
        gathering.run();
        return bucket.front().back() == static_cast<float>(ranks) ? 0 : 2;
      });
  EXPECT_FALSE(run.hung);
  for (const tests::RankEnd& end : run.ranks) {
    EXPECT_EQ(end.status, 0) << end.error;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << ranks << " processes have started, reduced and ended in " << seconds << " s\n";
}

TEST(SlowControlPlane, Starts64Processes) { start(64); }
TEST(SlowControlPlane, Starts256Processes) { start(256); }

}  // namespace
}  // namespace cnn::allreduce
