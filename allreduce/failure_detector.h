#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace cnn::allreduce {

// To whom a rank sends its signs of life, and from whom it expects them.
struct WatchGraph {
  std::vector<int> to, from;
};
// Host h sends to the hosts 1, 2, 4, ... behind it, round and round, each rank to one of theirs: a
// rank has as many watchers as the number of hosts has bits, all on other hosts, and whatever set
// of ranks dies, somebody who lives watches one of them. host_of: by rank, any numbers.
WatchGraph watch_graph(std::span<const int> host_of, int rank);

// Finds out that a rank of another host gives no sign of life, by heartbeats on a watch graph, and
// by asking the one that this rank waits for, as SWIM does (Das et al., 2002). A rank sends a few
// messages in each period whatever the number of ranks. Plain data without a clock or a network:
// times are what the caller says that its process has lived.
class FailureDetector {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // A sign of life, which tells what its sender does.
  struct Sign {
    std::uint64_t progress = 0;   // see progress.h
    std::int32_t waits_for = -1;  // a rank; -1: it does not wait
    std::int32_t root = -1;       // the last of the chain of ranks that wait, as far as it knows
    std::uint32_t asks = 0;       // 1: it wants a sign in return
    std::uint32_t unused = 0;
  };
  struct Silence {
    int rank = -1;  // -1: no sign is missing
    Duration lasts{};
  };

  // host_of: by rank. A rank of this host is asked what it does, but not missed: its end can be
  // seen.
  FailureDetector(std::span<const int> host_of, int rank);

  // The signs that this rank sends in the period that begins; waits_for: -1, if it does not wait.
  std::vector<std::pair<int, Sign>> beat(Duration lived, std::uint64_t progress, int waits_for);
  void heard(int from, const Sign& sign, Duration lived);

  // The rank whose sign has been missing for longest.
  Silence longest(Duration lived) const;
  // The rank that this one waits for in the end: it does not wait itself, as far as is known.
  int root_of(int rank) const;
  std::uint64_t progress_of(int rank) const;  // 0: nothing is known

 private:
  WatchGraph graph_;
  int rank_;
  std::vector<int> near_;          // ranks of this host, ascending
  std::map<int, Duration> heard_;  // when, from each that is watched
  std::map<int, Duration> asked_;  // since when, those of other hosts that have not answered
  std::vector<int> askers_;        // in this period
  std::map<int, Sign> known_;      // the latest of each
};

}  // namespace cnn::allreduce
