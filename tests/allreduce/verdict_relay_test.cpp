#include "allreduce/verdict_relay.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <gtest/gtest.h>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace cnn::allreduce {
namespace {

struct Told {
  int origin = -1, culprit = -1;  // of the first verdict that a rank knows; -1: none
  std::size_t messages = 0;       // that it has sent
  double ended = -1;              // when; -1: it has not
};

// Ranks that look for messages now and then, as ranks do that compute, and end soon after they have
// heard a verdict and told their neighbours.
class Network {
 public:
  Network(int ranks, std::set<int> dead, unsigned seed)
      : dead_(std::move(dead)), random_(seed), told_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      relays_.emplace_back(rank, ranks);
    }
    inboxes_.resize(told_.size());
  }

  // At that time this rank gives up because of that one.
  void give_up(double time, int rank, int culprit) { looks_.push({time, rank, culprit}); }

  const std::vector<Told>& run() {
    std::uniform_real_distribution<double> between_looks(0, 1);
    for (int rank = 0; rank < static_cast<int>(told_.size()); ++rank) {
      for (double time = 0; time < 100; time += between_looks(random_)) {
        looks_.push({time, rank, -1});
      }
    }
    while (!looks_.empty()) {
      const Look look = looks_.top();
      looks_.pop();
      const Told& told = of(look.rank);
      if (!dead_.contains(look.rank) && (told.ended < 0 || look.time < told.ended)) {
        handle(look);
      }
    }
    return told_;
  }
  std::size_t lost_messages() const { return lost_messages_; }

 private:
  static constexpr double on_the_way = 1e-3, farewell = 5e-3;

  struct Look {
    double time;
    int rank, culprit;  // culprit: -1, unless the rank gives up by itself
    bool operator<(const Look& other) const { return time > other.time; }
  };
  struct Message {
    double arrives;
    int from, origin, culprit;
  };

  Told& of(int rank) { return told_[static_cast<std::size_t>(rank)]; }

  void handle(const Look& look) {
    VerdictRelay& relay = relays_[static_cast<std::size_t>(look.rank)];
    std::vector<Message>& inbox = inboxes_[static_cast<std::size_t>(look.rank)];
    std::vector<Message> arrived;
    for (const Message& message : inbox) {
      if (message.arrives <= look.time) {
        arrived.push_back(message);
        relay.heard(message.from, message.origin);
      }
    }
    std::erase_if(inbox, [&](const Message& message) { return message.arrives <= look.time; });
    if (look.culprit >= 0 && of(look.rank).origin < 0) {
      tell(look.time, look.rank, {0, look.rank, look.rank, look.culprit});
    }
    for (const Message& message : arrived) {
      tell(look.time, look.rank, message);
    }
  }

  void tell(double time, int rank, const Message& verdict) {
    Told& told = of(rank);
    if (told.origin < 0) {
      told.origin = verdict.origin;
      told.culprit = verdict.culprit;
      told.ended = time + farewell;
    }
    for (const int to :
         relays_[static_cast<std::size_t>(rank)].to_tell(verdict.origin, verdict.culprit)) {
      ++told.messages;
      const Told& receiver = of(to);
      lost_messages_ += receiver.ended >= 0 && receiver.ended < time ? 1 : 0;
      inboxes_[static_cast<std::size_t>(to)].push_back(
          {time + on_the_way, rank, verdict.origin, verdict.culprit});
    }
  }

  std::set<int> dead_;
  std::mt19937 random_;
  std::vector<Told> told_;
  std::vector<VerdictRelay> relays_;
  std::vector<std::vector<Message>> inboxes_;
  std::priority_queue<Look> looks_;
  std::size_t lost_messages_ = 0;
};

std::size_t bits_of(int ranks) { return std::bit_width(static_cast<unsigned>(ranks) - 1); }

TEST(VerdictRelay, HasTwoNeighboursForEachBitOfTheRanks) {
  EXPECT_EQ(VerdictRelay(0, 2).neighbours(), (std::vector{1}));
  EXPECT_EQ(VerdictRelay(1, 4).neighbours(), (std::vector{0, 2, 3}));
  EXPECT_EQ(VerdictRelay(5, 16).neighbours(), (std::vector{1, 3, 4, 6, 7, 9, 13}));
  for (int ranks = 1; ranks <= 300; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<int> neighbours = VerdictRelay(rank, ranks).neighbours();
      EXPECT_LE(neighbours.size(), 2 * bits_of(ranks));
      EXPECT_EQ(std::ranges::count(neighbours, rank), 0);
      for (const int other : neighbours) {  // both know of one another
        const std::vector<int> back = VerdictRelay(other, ranks).neighbours();
        EXPECT_EQ(std::ranges::count(back, rank), 1) << rank << " and " << other << " of " << ranks;
      }
    }
  }
}

TEST(VerdictRelay, TellsAllRanksInALogarithmOfMessages) {
  for (const int ranks : {2, 3, 4, 7, 16, 100, 1024}) {
    for (const int origin : {0, ranks - 1}) {
      const int culprit = (origin + 1) % ranks;
      Network network(ranks, {culprit}, 1);
      network.give_up(10, origin, culprit);
      const std::vector<Told>& told = network.run();
      for (int rank = 0; rank < ranks; ++rank) {
        const Told& of = told[static_cast<std::size_t>(rank)];
        EXPECT_EQ(of.culprit, rank == culprit ? -1 : culprit) << rank << " of " << ranks;
        EXPECT_LE(of.messages, 2 * bits_of(ranks)) << rank << " of " << ranks;
      }
      EXPECT_EQ(network.lost_messages(), 0U) << ranks << " ranks";
    }
  }
}

// As many as a rank has neighbours, less one.
TEST(VerdictRelay, TellsAllThatLiveHoweverManyFailAtOnce) {
  std::mt19937 random(7);
  for (const int ranks : {4, 16, 33, 100, 1024}) {
    for (unsigned seed = 0; seed < 5; ++seed) {
      std::set<int> dead;
      const std::size_t failed = VerdictRelay(0, ranks).neighbours().size() - 1;
      while (dead.size() < failed) {
        dead.insert(1 + static_cast<int>(random() % static_cast<unsigned>(ranks - 1)));
      }
      Network network(ranks, dead, seed);
      network.give_up(10, 0, *dead.begin());
      const std::vector<Told>& told = network.run();
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(told[static_cast<std::size_t>(rank)].culprit,
                  dead.contains(rank) ? -1 : *dead.begin())
            << rank << " of " << ranks << ", seed " << seed;
      }
    }
  }
}

// Every rank names one of them, and sends no more than twice to a neighbour.
TEST(VerdictRelay, KeepsToOneVerdictWhereSeveralGiveUpAtOnce) {
  for (const int ranks : {7, 64, 1024}) {
    Network network(ranks, {3, 5}, 2);
    network.give_up(10, 0, 3);
    network.give_up(10, 2, 5);
    network.give_up(10.001, 4, 3);
    const std::vector<Told>& told = network.run();
    for (int rank = 0; rank < ranks; ++rank) {
      const Told& of = told[static_cast<std::size_t>(rank)];
      if (rank != 3 && rank != 5) {
        EXPECT_TRUE(of.culprit == 3 || of.culprit == 5) << rank << " of " << ranks;
      }
      EXPECT_LE(of.messages, 4 * bits_of(ranks)) << rank << " of " << ranks;
    }
  }
}

TEST(VerdictRelay, TellsThatOfRankZeroAfterAnother) {
  VerdictRelay relay(2, 8);
  EXPECT_EQ(relay.to_tell(5, 5), (std::vector{0, 1, 3, 4, 6}));
  EXPECT_TRUE(relay.to_tell(6, 6).empty());
  relay.heard(1, 0);
  EXPECT_EQ(relay.to_tell(0, 0), (std::vector{3, 4, 6}));
  EXPECT_TRUE(relay.to_tell(0, 0).empty());
  EXPECT_TRUE(relay.to_tell(7, 7).empty());
}

}  // namespace
}  // namespace cnn::allreduce
