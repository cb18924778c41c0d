#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "bench/ranks/rank_context.h"
#include "bench/report/observer.h"
#include "bench/session/team.h"
#include "runtime/timeline.h"

// For the sources of Team only.
namespace cnn::allreduce {
class Transport;
}

namespace cnn::bench {

class RankCheck;
class RankThread;
class StepRunner;

// One session with what it computes by. Each of several has a thread, on which all is done.
struct Team::Rank {
  // With several ranks: the part of the machine that is this one's.
  std::optional<Backend> backend;
  std::unique_ptr<allreduce::Transport> transport;
  std::unique_ptr<RankExchange> exchange;
  std::optional<RankContext> context;  // with several ranks; its kernels use the exchange
  std::unique_ptr<Session> session;
  StepRunner* evaluation = nullptr;      // since begin_evaluation()
  StepValues values;                     // in the step that runs
  Timeline timeline;                     // of the latest that was timed
  std::unique_ptr<RankCheck> check;      // since start(); null where there is nothing to check
  std::unique_ptr<StepSamples> samples;  // since start(); null where none are wanted
  std::unique_ptr<RankThread> thread;
};

template <class ValueOf>
auto Team::of_all_ranks(const ValueOf& value_of) {
  std::vector<std::invoke_result_t<const ValueOf&, Rank&>> mine;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    only(*rank, [&](Rank& of) { mine.push_back(value_of(of)); });
  }
  return all_gather(mine);
}

}  // namespace cnn::bench
