#include "allreduce/multiplexed_transport.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

namespace cnn::allreduce {
namespace {

// A transport between processes that only records the posted messages.
class NotingTransport final : public Transport {
 public:
  using Message = std::tuple<int, std::size_t>;  // process, channel

  explicit NotingTransport(int rank) : rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return 3; }
  std::size_t channels() const override { return 40; }
  Bytes allocate_shared(std::size_t /*bytes*/) override { return memory_; }
  std::byte* peer_address(int /*rank*/, std::byte* /*own*/) override { return nullptr; }
  void send(int to, std::size_t channel, std::span<const Bytes> /*pieces*/) override {
    sends.emplace_back(to, channel);
  }
  bool sent(int to, std::size_t channel) override { return sends.back() == Message(to, channel); }
  void receive(int from, std::size_t channel, std::span<const Bytes> /*at_sender*/,
               std::span<const Bytes> /*to*/) override {
    receives.emplace_back(from, channel);
  }
  bool received(int from, std::size_t channel) override {
    return receives.back() == Message(from, channel);
  }
  void arrive(std::span<const int> group, std::size_t channel) override {
    for (const int process : group) {
      arrivals.emplace_back(process, channel);
    }
  }
  bool arrived(std::span<const int> group, std::size_t channel) override {
    return std::ranges::all_of(group, [&](int process) {
      return std::ranges::find(peer_arrivals, Message(process, channel)) != peer_arrivals.end();
    });
  }
  void idle(int waits_for) override { awaited.push_back(waits_for); }
  void busy() override {}
  void leave(std::optional<int> /*lost*/) override {}

  std::vector<Message> sends, receives, arrivals;
  std::vector<Message> peer_arrivals;  // set by a test: processes that have arrived
  std::vector<int> awaited;

 private:
  int rank_;
  std::array<std::byte, 64> memory_{};
};

constexpr int ranks_per_process = 2;

TEST(MultiplexedTransport, NumbersRanksProcessByProcess) {
  NotingTransport processes(1);
  std::mutex mutex;
  const MultiplexedTransport transport(processes, mutex, /*local_rank=*/1, ranks_per_process);
  EXPECT_EQ(transport.rank(), 3);
  EXPECT_EQ(transport.ranks(), 6);
  EXPECT_EQ(transport.channels(), 10U)
      << "40 channels for the four pairs of ranks of two processes";
}

TEST(MultiplexedTransport, GivesEachPairOfRanksChannelsOfItsOwn) {
  NotingTransport processes(0);
  std::mutex mutex;
  std::set<NotingTransport::Message> used;
  std::size_t messages = 0;
  for (int place = 0; place < ranks_per_process; ++place) {
    MultiplexedTransport transport(processes, mutex, place, ranks_per_process);
    for (std::size_t channel = 0; channel < transport.channels(); ++channel) {
      for (const int to : {2, 3, 4, 5}) {
        transport.send(to, channel, {});
        EXPECT_TRUE(transport.sent(to, channel));
        EXPECT_EQ(std::get<0>(processes.sends.back()), to / ranks_per_process);
        EXPECT_LT(std::get<1>(processes.sends.back()), processes.channels());
        used.insert(processes.sends.back());
        ++messages;
      }
    }
  }
  EXPECT_EQ(used.size(), messages);
}

TEST(MultiplexedTransport, ReceivesOnTheChannelOnWhichThePeerSends) {
  NotingTransport sender(0), receiver(1);
  std::mutex mutex;
  for (int from = 0; from < ranks_per_process; ++from) {
    for (int to = 0; to < ranks_per_process; ++to) {
      MultiplexedTransport one(sender, mutex, from, ranks_per_process),
          other(receiver, mutex, to, ranks_per_process);
      one.send(ranks_per_process + to, 7, {});
      other.receive(from, 7, {}, {});
      EXPECT_EQ(std::get<1>(sender.sends.back()), std::get<1>(receiver.receives.back()));
      EXPECT_EQ(std::get<0>(receiver.receives.back()), 0);
      EXPECT_TRUE(other.received(from, 7));
    }
  }
}

TEST(MultiplexedTransport, WaitsForTheProcessOfARank) {
  NotingTransport processes(0);
  std::mutex mutex;
  MultiplexedTransport transport(processes, mutex, 0, ranks_per_process);
  transport.idle(5);
  transport.idle(any_rank);
  EXPECT_EQ(processes.awaited, (std::vector<int>{2, any_rank}));
}

TEST(MultiplexedTransport, GivesEachPairOfRanksABarrierOfItsOwn) {
  NotingTransport lower(0), upper(1);
  std::mutex mutex;
  std::set<NotingTransport::Message> used;
  for (int a = 0; a < ranks_per_process; ++a) {
    for (int b = ranks_per_process; b < 2 * ranks_per_process; ++b) {
      MultiplexedTransport one(lower, mutex, a, ranks_per_process),
          other(upper, mutex, b - ranks_per_process, ranks_per_process);
      const std::vector<int> both{a, b};
      one.arrive(both, 3);
      EXPECT_FALSE(other.arrived(both, 3)) << a << " and " << b;
      upper.peer_arrivals.emplace_back(0, std::get<1>(lower.arrivals.back()));
      EXPECT_TRUE(other.arrived(both, 3)) << a << " and " << b;
      other.arrive(both, 3);
      EXPECT_EQ(std::get<0>(lower.arrivals.back()), 1);
      EXPECT_EQ(upper.arrivals.back(),
                NotingTransport::Message(0, std::get<1>(lower.arrivals.back())));
      used.insert(upper.arrivals.back());
    }
  }
  EXPECT_EQ(used.size(), 4U);
  EXPECT_EQ(lower.arrivals.size(), 4U) << "no rank sends itself an arrival";
}

TEST(MultiplexedTransport, AddressesNoMemoryOfPeers) {
  NotingTransport processes(0);
  std::mutex mutex;
  MultiplexedTransport transport(processes, mutex, 1, ranks_per_process);
  std::byte own{};
  EXPECT_EQ(transport.peer_address(0, &own), nullptr);
  EXPECT_EQ(transport.peer_address(1, &own), &own);
}

}  // namespace
}  // namespace cnn::allreduce
