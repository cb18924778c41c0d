#include "allreduce/abort_gossip.h"

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

// The state of one rank at the end of a simulation.
struct Outcome {
  int origin = -1, culprit = -1;  // from the first notice that it got; -1 if none
  std::size_t messages = 0;       // the number of messages that it sent
  double ended = -1;              // the time at which it ended; -1 if it still runs
};

// Simulates ranks that poll for messages at random times, as computing ranks do. A rank ends soon
// after it has received and forwarded a notice.
class Network {
 public:
  Network(int ranks, std::set<int> dead, unsigned seed)
      : dead_(std::move(dead)), random_(seed), outcomes_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      gossips_.emplace_back(rank, ranks);
    }
    inboxes_.resize(outcomes_.size());
  }

  // Schedules the abort of a rank that blames this culprit.
  void abort(double time, int rank, int culprit) { polls_.push({time, rank, culprit}); }

  const std::vector<Outcome>& run() {
    std::uniform_real_distribution<double> poll_interval(0, 1);
    for (int rank = 0; rank < static_cast<int>(outcomes_.size()); ++rank) {
      for (double time = 0; time < 100; time += poll_interval(random_)) {
        polls_.push({time, rank, -1});
      }
    }
    while (!polls_.empty()) {
      const Poll poll = polls_.top();
      polls_.pop();
      const Outcome& outcome = of(poll.rank);
      if (!dead_.contains(poll.rank) && (outcome.ended < 0 || poll.time < outcome.ended)) {
        handle(poll);
      }
    }
    return outcomes_;
  }
  std::size_t sent_to_ended() const { return sent_to_ended_; }

 private:
  static constexpr double on_the_way = 1e-3, farewell = 5e-3;

  struct Poll {
    double time;
    int rank, culprit;  // culprit is -1 unless the rank aborts by itself
    bool operator<(const Poll& other) const { return time > other.time; }
  };
  struct Message {
    double arrives;
    int from, origin, culprit;
  };

  Outcome& of(int rank) { return outcomes_[static_cast<std::size_t>(rank)]; }

  void handle(const Poll& poll) {
    AbortGossip& gossip = gossips_[static_cast<std::size_t>(poll.rank)];
    std::vector<Message>& inbox = inboxes_[static_cast<std::size_t>(poll.rank)];
    std::vector<Message> arrived;
    for (const Message& message : inbox) {
      if (message.arrives <= poll.time) {
        arrived.push_back(message);
        gossip.on_receive(message.from, message.origin);
      }
    }
    std::erase_if(inbox, [&](const Message& message) { return message.arrives <= poll.time; });
    if (poll.culprit >= 0 && of(poll.rank).origin < 0) {
      forward(poll.time, poll.rank, {0, poll.rank, poll.rank, poll.culprit});
    }
    for (const Message& message : arrived) {
      forward(poll.time, poll.rank, message);
    }
  }

  void forward(double time, int rank, const Message& notice) {
    Outcome& outcome = of(rank);
    if (outcome.origin < 0) {
      outcome.origin = notice.origin;
      outcome.culprit = notice.culprit;
      outcome.ended = time + farewell;
    }
    for (const int to :
         gossips_[static_cast<std::size_t>(rank)].receivers(notice.origin, notice.culprit)) {
      ++outcome.messages;
      const Outcome& receiver = of(to);
      sent_to_ended_ += receiver.ended >= 0 && receiver.ended < time ? 1 : 0;
      inboxes_[static_cast<std::size_t>(to)].push_back(
          {time + on_the_way, rank, notice.origin, notice.culprit});
    }
  }

  std::set<int> dead_;
  std::mt19937 random_;
  std::vector<Outcome> outcomes_;
  std::vector<AbortGossip> gossips_;
  std::vector<std::vector<Message>> inboxes_;
  std::priority_queue<Poll> polls_;
  std::size_t sent_to_ended_ = 0;
};

std::size_t bits_of(int ranks) { return std::bit_width(static_cast<unsigned>(ranks) - 1); }

TEST(AbortGossip, HasTwoNeighboursPerBitOfTheRanks) {
  EXPECT_EQ(AbortGossip(0, 2).neighbours(), (std::vector{1}));
  EXPECT_EQ(AbortGossip(1, 4).neighbours(), (std::vector{0, 2, 3}));
  EXPECT_EQ(AbortGossip(5, 16).neighbours(), (std::vector{1, 3, 4, 6, 7, 9, 13}));
  for (int ranks = 1; ranks <= 300; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<int> neighbours = AbortGossip(rank, ranks).neighbours();
      EXPECT_LE(neighbours.size(), 2 * bits_of(ranks));
      EXPECT_EQ(std::ranges::count(neighbours, rank), 0);
      for (const int other : neighbours) {  // the graph is undirected
        const std::vector<int> back = AbortGossip(other, ranks).neighbours();
        EXPECT_EQ(std::ranges::count(back, rank), 1) << rank << " and " << other << " of " << ranks;
      }
    }
  }
}

TEST(AbortGossip, ReachesAllRanksWithLogarithmicallyManyMessages) {
  for (const int ranks : {2, 3, 4, 7, 16, 100, 1024}) {
    for (const int origin : {0, ranks - 1}) {
      const int culprit = (origin + 1) % ranks;
      Network network(ranks, {culprit}, 1);
      network.abort(10, origin, culprit);
      const std::vector<Outcome>& outcomes = network.run();
      for (int rank = 0; rank < ranks; ++rank) {
        const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
        EXPECT_EQ(outcome.culprit, rank == culprit ? -1 : culprit) << rank << " of " << ranks;
        EXPECT_LE(outcome.messages, 2 * bits_of(ranks)) << rank << " of " << ranks;
      }
      EXPECT_EQ(network.sent_to_ended(), 0U) << ranks << " ranks";
    }
  }
}

// The number of failed ranks is one less than the number of a rank's neighbours.
TEST(AbortGossip, ReachesAllLiveRanksWhenManyFailAtOnce) {
  std::mt19937 random(7);
  for (const int ranks : {4, 16, 33, 100, 1024}) {
    for (unsigned seed = 0; seed < 5; ++seed) {
      std::set<int> dead;
      const std::size_t failed = AbortGossip(0, ranks).neighbours().size() - 1;
      while (dead.size() < failed) {
        dead.insert(1 + static_cast<int>(random() % static_cast<unsigned>(ranks - 1)));
      }
      Network network(ranks, dead, seed);
      network.abort(10, 0, *dead.begin());
      const std::vector<Outcome>& outcomes = network.run();
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(outcomes[static_cast<std::size_t>(rank)].culprit,
                  dead.contains(rank) ? -1 : *dead.begin())
            << rank << " of " << ranks << ", seed " << seed;
      }
    }
  }
}

// Every rank names one of the culprits and sends each neighbour at most two messages.
TEST(AbortGossip, AgreesOnOneCulpritWhenSeveralRanksAbortAtOnce) {
  for (const int ranks : {7, 64, 1024}) {
    Network network(ranks, {3, 5}, 2);
    network.abort(10, 0, 3);
    network.abort(10, 2, 5);
    network.abort(10.001, 4, 3);
    const std::vector<Outcome>& outcomes = network.run();
    for (int rank = 0; rank < ranks; ++rank) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      if (rank != 3 && rank != 5) {
        EXPECT_TRUE(outcome.culprit == 3 || outcome.culprit == 5) << rank << " of " << ranks;
      }
      EXPECT_LE(outcome.messages, 4 * bits_of(ranks)) << rank << " of " << ranks;
    }
  }
}

TEST(AbortGossip, ForwardsTheNoticeOfRankZeroAfterAnother) {
  AbortGossip gossip(2, 8);
  EXPECT_EQ(gossip.receivers(5, 5), (std::vector{0, 1, 3, 4, 6}));
  EXPECT_TRUE(gossip.receivers(6, 6).empty());
  gossip.on_receive(1, 0);
  EXPECT_EQ(gossip.receivers(0, 0), (std::vector{3, 4, 6}));
  EXPECT_TRUE(gossip.receivers(0, 0).empty());
  EXPECT_TRUE(gossip.receivers(7, 7).empty());
}

}  // namespace
}  // namespace cnn::allreduce
