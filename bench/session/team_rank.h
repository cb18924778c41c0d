#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "bench/ranks/rank_context.h"
#include "bench/report/observer.h"
#include "bench/session/team.h"
#include "runtime/timeline.h"

// Included only by the sources of Team.
namespace cnn::allreduce {
class Transport;
}

namespace cnn::bench {

class RankCheck;
class RankThread;
class StepRunner;

// One session with its resources. Each of several ranks has a thread that runs all its work.
struct Team::Rank {
  // With several ranks: this rank's part of the machine.
  std::optional<Backend> backend;
  std::unique_ptr<allreduce::Transport> transport;
  std::unique_ptr<RankExchange> exchange;
  std::optional<RankContext> context;  // with several ranks; its kernels use the exchange
  // Observers of the steps; the session's streams may use their memory until they are destroyed.
  std::unique_ptr<RankCheck> check;      // set by start(); null if there is nothing to check
  std::unique_ptr<StepSamples> samples;  // set by start(); null if not requested
  std::unique_ptr<Session> session;
  StepRunner* evaluation = nullptr;  // set by begin_evaluation()
  StepValues values;                 // of the current step
  Timeline timeline;                 // of the latest timed step
  std::unique_ptr<RankThread> thread;
};

template <class ValueOf>
auto Team::of_all_ranks(const ValueOf& value_of) {
  std::vector<std::invoke_result_t<const ValueOf&, Rank&>> mine;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    only(*rank, [&](Rank& rank) { mine.push_back(value_of(rank)); });
  }
  return all_gather(mine);
}

}  // namespace cnn::bench
