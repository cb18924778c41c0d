#include "allreduce/failure_detector.h"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "allreduce/algorithm.h"

namespace cnn::allreduce {
namespace {

using Duration = FailureDetector::Duration;
using std::chrono::milliseconds;

constexpr Duration period = milliseconds(250), timeout = milliseconds(2000);

// Simulates ranks whose heartbeats arrive one period after they were sent, without a real clock.
class Ranks {
 public:
  explicit Ranks(const Topology& topology) : waits_for_(topology.host_of.size(), -1) {
    for (int rank = 0; rank < topology.ranks(); ++rank) {
      detectors_.emplace_back(topology.host_of, rank);
    }
  }

  void wait_for(int rank, int other) { waits_for_[static_cast<std::size_t>(rank)] = other; }
  void kill(int rank) { dead_.insert(rank); }
  void cut(int rank, int other) { cut_.insert({rank, other}), cut_.insert({other, rank}); }

  void pass(int periods) {
    for (int i = 0; i < periods; ++i) {
      now_ += period;
      deliver();
      max_sent_ = 0;
      for (int rank = 0; rank < std::ssize(detectors_); ++rank) {
        if (!dead_.contains(rank)) {
          beat(rank);
        }
      }
    }
  }

  // Returns the ranks that live ranks report as dead.
  std::set<int> reported() const {
    std::set<int> reported;
    for (int rank = 0; rank < std::ssize(detectors_); ++rank) {
      const auto overdue = detectors_[static_cast<std::size_t>(rank)].most_overdue(now_);
      if (!dead_.contains(rank) && overdue.rank >= 0 && overdue.since > timeout) {
        reported.insert(overdue.rank);
      }
    }
    return reported;
  }
  // Returns the most heartbeats of a rank in the latest period.
  std::size_t max_sent() const { return max_sent_; }
  const FailureDetector& of(int rank) const { return detectors_[static_cast<std::size_t>(rank)]; }
  const std::set<int>& dead() const { return dead_; }

 private:
  struct Message {
    int from, to;
    FailureDetector::Heartbeat heartbeat;
  };

  void beat(int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const auto heartbeats = detectors_[at].begin_period(now_, 100 + at, waits_for_[at]);
    for (const auto& [to, heartbeat] : heartbeats) {
      in_flight_.push_back({rank, to, heartbeat});
    }
    max_sent_ = std::max(max_sent_, heartbeats.size());
  }
  void deliver() {
    for (const Message& message : in_flight_) {
      if (!dead_.contains(message.to) && !cut_.contains({message.from, message.to})) {
        detectors_[static_cast<std::size_t>(message.to)].on_receive(message.from, message.heartbeat,
                                                                    now_);
      }
    }
    in_flight_.clear();
  }

  std::vector<FailureDetector> detectors_;
  std::vector<int> waits_for_;
  std::set<int> dead_;
  std::set<std::pair<int, int>> cut_;
  std::vector<Message> in_flight_;
  Duration now_{};
  std::size_t max_sent_ = 0;
};

constexpr int until_reported = timeout / period + 3;  // number of periods

bool includes(const std::set<int>& all, const std::set<int>& some) {
  return std::ranges::includes(all, some);
}

TEST(WatchGraph, GivesEachRankWatchersOnOtherHosts) {
  for (const Topology& topology :
       {ranks_on_hosts(1, 4), ranks_on_hosts(2, 1), ranks_on_hosts(5, 3), ranks_on_hosts(64, 4),
        Topology{.host_of = {0, 0, 0, 1, 2, 2, 5, 5, 5, 5}}}) {
    std::multiset<std::pair<int, int>> to, from;
    for (int rank = 0; rank < topology.ranks(); ++rank) {
      const WatchGraph graph = watch_graph(topology.host_of, rank);
      const auto host = [&](int r) { return topology.host_of[static_cast<std::size_t>(r)]; };
      for (const int other : graph.to) {
        to.insert({rank, other});
        EXPECT_NE(host(other), host(rank));
      }
      for (const int other : graph.from) {
        from.insert({other, rank});
      }
    }
    EXPECT_EQ(to, from) << topology.ranks() << " ranks";
    EXPECT_EQ(to.empty(), topology.host_of.front() == topology.host_of.back());
  }
}

TEST(FailureDetector, SendsLogarithmicallyManyHeartbeats) {
  for (const auto& [hosts, each, most] :
       {std::tuple(2, 1, 1U), std::tuple(256, 1, 8U), std::tuple(1024, 1, 10U),
        std::tuple(128, 8, 7U), std::tuple(1, 16, 0U)}) {
    Ranks ranks(ranks_on_hosts(hosts, each));
    ranks.pass(3);
    EXPECT_EQ(ranks.max_sent(), most) << hosts << " hosts";
    for (int rank = 0; rank < hosts * each; ++rank) {
      ranks.wait_for(rank, (rank + 3) % (hosts * each));
    }
    ranks.pass(3);  // adds one probe and one reply
    EXPECT_LE(ranks.max_sent(), most + 2) << hosts << " hosts";
  }
}

TEST(FailureDetector, ReportsNoLiveRank) {
  Ranks ranks(ranks_on_hosts(9, 2));
  for (int rank = 0; rank < 18; ++rank) {
    ranks.wait_for(rank, 5);  // rank 5 is slow but sends heartbeats
  }
  ranks.pass(10 * until_reported);
  EXPECT_EQ(ranks.reported(), std::set<int>());
}

TEST(FailureDetector, ReportsOnlyDeadRanks) {
  for (const int victims : {1, 2, 7, 40, 255}) {
    Ranks ranks(ranks_on_hosts(256, 1));
    ranks.pass(4);
    for (int i = 0; i < victims; ++i) {
      ranks.kill(i * 37 % 256);
    }
    ranks.pass(until_reported);
    EXPECT_FALSE(ranks.reported().empty()) << victims;
    EXPECT_TRUE(includes(ranks.dead(), ranks.reported())) << victims;
  }
}

TEST(FailureDetector, ReportsADeadRankWhoseWatchersDieWithIt) {
  const Topology topology = ranks_on_hosts(64, 1);
  Ranks ranks(topology);
  ranks.pass(4);
  ranks.kill(20);
  for (const int watcher : watch_graph(topology.host_of, 20).to) {
    ranks.kill(watcher);
  }
  ranks.pass(until_reported);
  EXPECT_FALSE(ranks.reported().empty());
  EXPECT_TRUE(includes(ranks.dead(), ranks.reported()));
}

TEST(FailureDetector, ReportsAHostThatFails) {
  for (const int hosts : {2, 3, 32}) {
    Ranks ranks(ranks_on_hosts(hosts, 8));
    ranks.pass(4);
    for (int rank = 8; rank < 16; ++rank) {
      ranks.kill(rank);
    }
    ranks.pass(until_reported);
    EXPECT_FALSE(ranks.reported().empty()) << hosts;
    EXPECT_TRUE(includes(ranks.dead(), ranks.reported())) << hosts;
  }
}

// The link is cut between two hosts that do not watch each other. Only a waiting rank sends a probe
// over it.
TEST(FailureDetector, ReportsTheAwaitedRankThatDoesNotReply) {
  const Topology topology = ranks_on_hosts(64, 1);
  for (const bool waits : {true, false}) {
    Ranks ranks(topology);
    ranks.cut(10, 13);
    if (waits) {
      ranks.wait_for(10, 13);
    }
    ranks.pass(until_reported + 2);
    EXPECT_EQ(ranks.reported(), waits ? std::set<int>{13} : std::set<int>());
  }
}

// No probe goes to a rank that is not awaited any more, so that it has nothing to reply to.
TEST(FailureDetector, ForgetsTheProbeOfARankThatItNoLongerAwaits) {
  Ranks ranks(ranks_on_hosts(64, 1));
  ranks.cut(10, 13);
  ranks.wait_for(10, 13);
  ranks.pass(until_reported / 2);
  ranks.wait_for(10, -1);
  ranks.pass(2 * until_reported);
  EXPECT_EQ(ranks.reported(), std::set<int>());
}

TEST(FailureDetector, CountsFromTheFirstProbeThatWasSent) {
  FailureDetector detector(ranks_on_hosts(64, 1).host_of, 10);
  const auto probes = [&](int at) {  // returns whether rank 13 gets a probe
    const auto heartbeats = detector.begin_period(at * period, 1, 13);
    return std::ranges::any_of(
        heartbeats, [](const auto& to) { return to.first == 13 && to.second.wants_reply != 0; });
  };
  const auto is_overdue = [&](int at) {  // the watched ranks are heard
    for (const int other : watch_graph(ranks_on_hosts(64, 1).host_of, 10).from) {
      detector.on_receive(other, {}, at * period);
    }
    return detector.most_overdue(at * period).rank == 13;
  };
  for (int at = 0; at < 5; ++at) {
    EXPECT_TRUE(probes(at));
    detector.on_skip(13, at * period);
    EXPECT_FALSE(is_overdue(at + 1));
  }
  EXPECT_TRUE(probes(5));
  EXPECT_TRUE(probes(6));
  detector.on_skip(13, 6 * period);  // the first one may still be answered
  EXPECT_TRUE(is_overdue(7));
  EXPECT_EQ(detector.most_overdue(7 * period).since, 2 * period);
}

TEST(FailureDetector, KeepsAReplyThatWasNotSent) {
  FailureDetector detector(ranks_on_hosts(64, 1).host_of, 10);
  const auto replies = [&](int at) {
    return std::ranges::any_of(detector.begin_period(at * period, 1, -1),
                               [](const auto& to) { return to.first == 13; });
  };
  EXPECT_FALSE(replies(0));
  detector.on_receive(13, {.wants_reply = 1}, period);
  EXPECT_TRUE(replies(1));
  detector.on_skip(13, period);
  EXPECT_TRUE(replies(2));
  EXPECT_FALSE(replies(3));
}

TEST(FailureDetector, DoesNotReportARankOfItsHostThatDoesNotReply) {
  Ranks ranks(ranks_on_hosts(1, 4));
  ranks.wait_for(0, 2);
  ranks.kill(2);  // the host's ranks watch its process, so no probe reports it
  ranks.pass(5 * until_reported);
  EXPECT_EQ(ranks.reported(), std::set<int>());
}

TEST(FailureDetector, FollowsAChainOfWaitsToItsEnd) {
  constexpr int n = 40;
  Ranks ranks(ranks_on_hosts(n, 1));
  for (int rank = 1; rank < n; ++rank) {
    ranks.wait_for(rank, rank - 1);  // rank 0 computes
  }
  ranks.pass(2 * n + 4);
  for (int rank = 1; rank < n; ++rank) {
    EXPECT_EQ(ranks.of(rank).root_of(rank - 1), 0) << "of rank " << rank;
    EXPECT_EQ(ranks.of(rank).progress_of(rank - 1), 100U + static_cast<unsigned>(rank) - 1);
  }
  // The waits now form a cycle, so any rank but the one that asks may be the root.
  ranks.wait_for(0, n - 1);
  ranks.pass(4);
  EXPECT_NE(ranks.of(5).root_of(4), 5);
}

}  // namespace
}  // namespace cnn::allreduce
