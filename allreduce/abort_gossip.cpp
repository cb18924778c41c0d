#include "allreduce/abort_gossip.h"

#include <algorithm>

namespace cnn::allreduce {

AbortGossip::AbortGossip(int rank, int ranks) {
  for (int distance = 1; distance < ranks; distance *= 2) {
    neighbours_.push_back((rank + distance) % ranks);
    neighbours_.push_back((rank + ranks - distance) % ranks);
  }
  std::ranges::sort(neighbours_);
  neighbours_.erase(std::unique(neighbours_.begin(), neighbours_.end()), neighbours_.end());
}

void AbortGossip::on_receive(int from, int origin) {
  senders_[any].push_back(from);
  if (origin == 0) {
    senders_[of_rank_0].push_back(from);
  }
}

std::vector<int> AbortGossip::receivers(int origin, int culprit) {
  const Kind kind = origin == 0 ? of_rank_0 : any;
  if (sent_[kind]) {
    return {};
  }
  sent_[any] = true;
  sent_[kind] = true;
  std::vector<int> ranks = neighbours_;
  std::erase_if(ranks, [&](int rank) {
    return rank == culprit || std::ranges::find(senders_[kind], rank) != senders_[kind].end();
  });
  return ranks;
}

}  // namespace cnn::allreduce
