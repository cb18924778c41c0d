// Counts the messages, bytes and peers of each rank apart from gradients and checks that they grow
// with the logarithm of the number of ranks. Unlike times, counts are equal on every machine.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "allreduce/calibrate.h"
#include "allreduce/communicator.h"
#include "allreduce/forwarding_transport.h"
#include "allreduce/repeated_all_gather.h"
#include "allreduce/shared_header.h"
#include "runtime/seconds_since.h"
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
  std::size_t messages = 0, bytes = 0, peers = 0;  // maxima over all ranks
};

constexpr SharedMemoryOptions small_segments{.segment_bytes = std::size_t{1} << 22U};

Counts counted(int ranks, const std::function<void(Transport&)>& work) {
  std::vector<Counts> of_ranks(static_cast<std::size_t>(ranks));
  const auto errors = tests::as_threads(ranks, small_segments, [&](Transport& transport) {
    CountingTransport counting(transport);
    work(counting);
    of_ranks[static_cast<std::size_t>(transport.rank())] = {counting.messages(), counting.bytes(),
                                                            counting.peers()};
  });
  EXPECT_EQ(errors, std::vector<std::string>(errors.size()));
  Counts most;
  for (const Counts& counts : of_ranks) {
    most = {std::max(most.messages, counts.messages), std::max(most.bytes, counts.bytes),
            std::max(most.peers, counts.peers)};
  }
  return most;
}

std::size_t rounds(int ranks) { return std::bit_width(static_cast<unsigned>(ranks) - 1); }

TEST(ControlPlane, GathersInALogarithmOfRounds) {
  for (const int ranks : {2, 7, 32}) {
    const Counts counts = counted(ranks, [](Transport& transport) {
      RepeatedAllGather all_gather(transport, 24);
      all_gather.run();
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
      const LinkSpeeds all = links_of_rank_0(transport, topology, speeds);
      EXPECT_EQ(all.links.latency, 1.0);
      ASSERT_EQ(all.of_rank.size(), topology.host_of.size());
      EXPECT_EQ(all.of_rank.front(), 1.0);
      EXPECT_EQ(all.of_rank.back(), 0.5);
    });
    EXPECT_LE(counts.messages, 2 * rounds(ranks) + 2) << ranks << " ranks";
  }
}

// Open MPI opens a connection to each rank that exchanges messages with this one.
TEST(ControlPlane, TouchesLogarithmicallyManyPeersInARing) {
  for (const int ranks : {2, 7, 32}) {
    const Counts counts = counted(ranks, [&](Transport& transport) {
      BucketCommunicator communicator(
          transport, *tests::usable_loops().back(),
          {.topology = ranks_on_hosts(ranks, 1), .rules = {{.algorithm = &find("ring")}}});
      RepeatedAllGather all_gather(transport, 24);
      const Bytes memory = transport.allocate_shared(4000);
      const std::vector<std::span<float>> bucket{{reinterpret_cast<float*>(memory.data()), 1000}};
      for (int step = 0; step < 3; ++step) {
        communicator.all_reduce(0, bucket, 1);
        all_gather.run();
      }
    });
    EXPECT_LE(counts.peers, 3 * rounds(ranks) + 2) << ranks << " ranks";
  }
}

// Returns a value of /proc/self/status or /proc/self/smaps_rollup in bytes; the file has it in KB.
std::size_t bytes_of(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string word; in >> word;) {
    if (word == key) {
      std::size_t kb = 0;
      in >> kb;
      return kb << 10U;
    }
  }
  return 0;
}

// The results of one rank, in memory that it shares with the test.
struct OfRank {
  double joined = 0, summed = 0, gathered = 0;  // seconds since the fork of the first rank
  std::size_t own_bytes = 0;  // bytes of memory that the rank shares with no other process
  std::size_t descriptors = 0;
};

class OfAllRanks {
 public:
  explicit OfAllRanks(int ranks) : bytes_(sizeof(OfRank) * static_cast<std::size_t>(ranks)) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  ~OfAllRanks() { ::munmap(memory_, bytes_); }
  OfAllRanks(const OfAllRanks&) = delete;
  OfAllRanks& operator=(const OfAllRanks&) = delete;

  OfRank& of(int rank) { return static_cast<OfRank*>(memory_)[rank]; }
  template <class Member>
  double most(Member member) {
    const auto number = [member](const OfRank& of_rank) {
      return static_cast<double>(of_rank.*member);
    };
    const std::span all(static_cast<OfRank*>(memory_), bytes_ / sizeof(OfRank));
    return number(*std::ranges::max_element(all, {}, number));
  }

 private:
  std::size_t bytes_;
  void* memory_;
};

constexpr int all_gathers = 5;

// Runs one rank's part of the start of a run, with a sum and some all-gathers.
int work_of_rank(Transport& transport, OfRank& own, const std::function<double()>& seconds) {
  own.joined = seconds();
  const Topology topology = ranks_on_hosts(1, transport.ranks());
  const LinkSpeeds speeds = links_of_rank_0(transport, topology, {});
  BucketCommunicator communicator(
      transport, *tests::usable_loops().back(),
      {.topology = topology, .links = speeds.links, .rules = {{.algorithm = &find("doubling")}}});
  RepeatedAllGather all_gather(transport, 24);
  const Bytes memory = transport.allocate_shared(100'000);
  const std::vector<std::span<float>> bucket{{reinterpret_cast<float*>(memory.data()), 25'000}};
  std::ranges::fill(bucket.front(), 1.0F);
  communicator.all_reduce(0, bucket, 1);
  all_gather.run();
  own.summed = seconds();
  for (int i = 0; i < all_gathers; ++i) {
    all_gather.run();
  }
  own.gathered = seconds();
  own.own_bytes = bytes_of("/proc/self/smaps_rollup", "Private_Dirty:");
  own.descriptors = static_cast<std::size_t>(std::distance(
      std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
  return bucket.front().back() == static_cast<float>(transport.ranks()) ? 0 : 2;
}

// Starts the ranks as processes with a sum of 100 KB and prints the times.
void start(int ranks) {
  constexpr SharedMemoryOptions tiny_segments{.segment_bytes = std::size_t{1} << 21U};
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [start] { return seconds_since(start); };
  OfAllRanks all(ranks);
  const tests::ForkedRun run = tests::as_processes(ranks, tiny_segments, [&](Transport& transport) {
    return work_of_rank(transport, all.of(transport.rank()), seconds);
  });
  EXPECT_FALSE(run.hung);
  for (const tests::RankEnd& end : run.ranks) {
    EXPECT_EQ(end.status, 0) << end.error;
  }
  // Neither number grows with the ranks; only the shared memory does.
  EXPECT_LT(all.most(&OfRank::own_bytes), 16e6);
  EXPECT_LT(all.most(&OfRank::descriptors), 100);
  const double messages = 1.0 * all_gathers * ranks * static_cast<double>(rounds(ranks));
  const double joined = all.most(&OfRank::joined), summed = all.most(&OfRank::summed);
  const double took = all.most(&OfRank::gathered) - summed;
  std::cout << ranks << " processes have joined after " << joined << " s, summed after " << summed
            << " s; " << messages << " messages in " << took << " s, " << messages / took
            << " a second; the most that a rank has of its own: "
            << all.most(&OfRank::own_bytes) / 1e6 << " MB, " << all.most(&OfRank::descriptors)
            << " descriptors; the board takes "
            << static_cast<double>(SharedHeader::header_bytes(
                   {.ranks = static_cast<std::uint64_t>(ranks), .channels = 64})) /
                   1e6
            << " MB\n";
}

TEST(SlowControlPlane, Starts64Processes) { start(64); }
TEST(SlowControlPlane, Starts256Processes) { start(256); }
TEST(SlowControlPlane, Starts1024Processes) { start(1024); }

}  // namespace
}  // namespace cnn::allreduce
