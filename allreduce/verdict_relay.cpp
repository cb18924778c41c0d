#include "allreduce/verdict_relay.h"

#include <algorithm>

namespace cnn::allreduce {

VerdictRelay::VerdictRelay(int rank, int ranks) {
  for (int distance = 1; distance < ranks; distance *= 2) {
    neighbours_.push_back((rank + distance) % ranks);
    neighbours_.push_back((rank + ranks - distance) % ranks);
  }
  std::ranges::sort(neighbours_);
  neighbours_.erase(std::unique(neighbours_.begin(), neighbours_.end()), neighbours_.end());
}

void VerdictRelay::heard(int from, int origin) {
  knowing_[any].push_back(from);
  if (origin == 0) {
    knowing_[of_first].push_back(from);
  }
}

std::vector<int> VerdictRelay::to_tell(int origin, int culprit) {
  const Which which = origin == 0 ? of_first : any;
  if (told_[which]) {
    return {};
  }
  told_[any] = true;
  told_[which] = true;
  std::vector<int> ranks = neighbours_;
  std::erase_if(ranks, [&](int rank) {
    return rank == culprit || std::ranges::find(knowing_[which], rank) != knowing_[which].end();
  });
  return ranks;
}

}  // namespace cnn::allreduce
