#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace cnn::allreduce {

// Spreads abort notices by gossip on a circulant graph: the neighbours of a rank are the ranks at
// the distances 1, 2, 4, ... in both directions. A rank sends at most two messages for each bit of
// the number of ranks, and all live ranks get a notice as long as fewer ranks have failed than a
// rank has neighbours. A rank forwards the first notice that it gets, and later once more the first
// notice of rank 0, for which World::rank_0_reports() waits. A state machine without a network.
class AbortGossip {
 public:
  AbortGossip(int rank, int ranks);

  const std::vector<int>& neighbours() const { return neighbours_; }  // ascending

  // Records that a notice of that origin has come from the neighbour `from`.
  void on_receive(int from, int origin);
  // Returns the neighbours to which to send the notice of that origin about that culprit; empty if
  // it need not be sent. Leaves out the culprit and those that have sent a notice themselves, which
  // may all have ended: a message to an ended rank may kill the sender.
  std::vector<int> receivers(int origin, int culprit);

 private:
  enum Kind : std::size_t { any, of_rank_0 };

  std::vector<int> neighbours_;
  std::array<std::vector<int>, 2> senders_;  // [Kind]: the ranks that have sent this one a notice
  std::array<bool, 2> sent_{};               // [Kind]
};

}  // namespace cnn::allreduce
