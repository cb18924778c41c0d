#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace cnn::allreduce {

// Spreads the word that a run ends by gossip on a circulant graph: the neighbours of a rank are 1,
// 2, 4, ... ranks before and behind it, so that a rank sends at most two messages for each bit of
// the number of ranks, and all others hear of it as long as fewer ranks have failed than a rank has
// neighbours. A rank tells its neighbours when it hears the first verdict, and again when it first
// hears that of rank 0, for which others may wait (see World::first_says). Plain data without a
// network.
class VerdictRelay {
 public:
  VerdictRelay(int rank, int ranks);

  const std::vector<int>& neighbours() const { return neighbours_; }  // ascending

  // A neighbour has told this rank a verdict of that origin.
  void heard(int from, int origin);
  // The ranks to tell the verdict of that origin, about that culprit: neighbours that do not know
  // of one. Empty if it need not be told any more. The culprit is left out: it may have ended. A
  // neighbour that knows may have ended too, and a message to it may end the sender.
  std::vector<int> to_tell(int origin, int culprit);

 private:
  enum Which : std::size_t { any, of_first };

  std::vector<int> neighbours_;
  std::array<std::vector<int>, 2> knowing_;  // [Which]: ranks that have told this one
  std::array<bool, 2> told_{};               // [Which]
};

}  // namespace cnn::allreduce
