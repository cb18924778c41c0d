#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace cnn::allreduce {

// The ranks to which a rank sends heartbeats, and those from which it expects them.
struct WatchGraph {
  std::vector<int> to, from;
};
// Returns the edges of `rank` in a circulant graph over hosts: host h sends to the hosts at the
// distances 1, 2, 4, ... behind it, each of its ranks to one rank there. So a rank has one watcher
// for each bit of the number of hosts, all on other hosts, and whatever set of ranks dies, a live
// rank watches one of them. host_of: the host of each rank, any numbers.
WatchGraph watch_graph(std::span<const int> host_of, int rank);

// Detects ranks of other hosts that have failed, by heartbeats along a watch graph and, as in SWIM
// (Das et al., 2002), by probing the rank that this one waits for. A rank sends a few messages per
// period whatever the number of ranks. A state machine without a clock or a network: `uptime` is
// the time that the process has run so far, without the time in which it was stopped.
class FailureDetector {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // The message that a rank sends, with its state.
  struct Heartbeat {
    std::uint64_t progress = 0;     // see progress.h
    std::int32_t waits_for = -1;    // a rank; -1: it does not wait
    std::int32_t root = -1;         // last known rank of the chain of waiting ranks; or -1
    std::uint32_t wants_reply = 0;  // 1: it is a probe
    std::uint32_t unused = 0;
  };
  struct Overdue {
    int rank = -1;  // -1: none is overdue
    Duration
        since{};  // the time since its last heartbeat, or since the probe that it has not answered
  };

  // Ranks of the same host are probed for their state but never count as overdue, because the end
  // of their processes can be seen.
  FailureDetector(std::span<const int> host_of, int rank);

  // Begins a period: returns the receivers and heartbeats to send in it. waits_for: the rank that
  // this one waits for, or -1.
  std::vector<std::pair<int, Heartbeat>> begin_period(Duration uptime, std::uint64_t progress,
                                                      int waits_for);
  // Tells that the heartbeat to that rank was not sent in the period that began at `uptime`,
  // because the previous one is still on its way. The next period sends one: it may be a reply.
  void on_skip(int to, Duration uptime);
  void on_receive(int from, const Heartbeat& heartbeat, Duration uptime);

  // Returns the rank that has been silent for longest.
  Overdue most_overdue(Duration uptime) const;
  // Returns the end of the chain of waiting ranks that begins with `rank`, as far as it is known.
  int root_of(int rank) const;
  // Returns the progress in the latest heartbeat of that rank; 0: none has come.
  std::uint64_t progress_of(int rank) const;

 private:
  WatchGraph graph_;
  int rank_;
  std::vector<int> local_ranks_;       // of this host, ascending
  std::map<int, Duration> last_seen_;  // by watched rank: the uptime at its latest heartbeat
  // Holds, for the rank of another host that this one waits for, the uptime at the first probe that
  // has no reply.
  std::map<int, Duration> probed_;
  std::vector<int> reply_to_;        // the ranks that have probed this one in this period
  std::map<int, Heartbeat> latest_;  // by rank
};

}  // namespace cnn::allreduce
