// The part of Team that makes the sessions of its ranks, with the first rank's choices.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <tuple>
#include <utility>

#include "bench/plan/job.h"
#include "bench/ranks/peers.h"
#include "bench/ranks/rank_consistency.h"
#include "bench/ranks/rank_exchange.h"
#include "bench/session/session.h"
#include "bench/session/team.h"
#include "bench/session/team_rank.h"
#include "lms/policy.h"
#include "runtime/error.h"

namespace cnn::bench {

struct Team::FirstRank {
  std::string plan;     // of --lms; empty: each plans for itself
  std::string choices;  // of kernels; empty: each chooses for itself
  std::string failure;  // why the step does not fit any rank; empty: it fits
  int stopped = 0;      // reason to end that arrived during planning; 0: none did

  static auto fields(auto& self) {
    return std::tie(self.plan, self.choices, self.failure, self.stopped);
  }
};

const RankContext& Team::context_of(const Rank& rank) const {
  return rank.context ? *rank.context : context_;
}

// Exchanged gradients have the same addresses on all ranks: with --lms all ranks use one plan, and
// if kernels are chosen, perhaps by timing, one choice, since each kernel needs a different
// workspace.
void Team::make_sessions() {
  const bool one_plan = job_.config->lms.enabled && job_.trains() && job_.ranks > 1;
  const bool one_choice = context_of(*ranks_.front()).backend.tuning.adopt && job_.ranks > 1;
  const FirstRank first = one_plan || one_choice ? first_rank(one_plan) : FirstRank();
  each([&](Rank& rank) {
    const RankContext& context = context_of(rank);
    if (rank.session == nullptr) {
      if (!first.choices.empty()) {
        context.backend.tuning.adopt(first.choices);
      }
      rank.session = std::make_unique<Session>(job_, context, first.plan);
    }
    if (const RankExchange* const exchange = exchange_of(rank)) {
      exchange->check_buckets(*job_.config, rank.session->plan());
    }
  });
  check_plans();
}

// Compares the ranks of this process; processes compare theirs when all sessions exist.
void Team::check_plans() {
  std::vector<std::string> plans;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    plans.push_back(
        exchange_plan(rank->session->plan(), context_of(*rank).backend.has_own_memory()));
  }
  const std::string difference = first_difference(plans);
  check(difference.empty(), difference);
}

// Makes the session of the first rank of all, and broadcasts what the others adopt.
Team::FirstRank Team::first_rank(bool one_plan) {
  FirstRank first;
  Rank& mine = *ranks_.front();
  if (is_first(mine)) {
    try {
      only(mine, [&](Rank& rank) {
        const RankContext& context = context_of(rank);
        rank.session = std::make_unique<Session>(job_, context);
        first.plan = one_plan ? rank.session->plan_text() : std::string();
        const KernelTuning& tuning = context.backend.tuning;
        first.choices = tuning.choices ? tuning.choices() : std::string();
      });
    } catch (const DoesNotFit& problem) {  // fits none of the ranks
      first.failure = problem.what();
    } catch (const lms::PlanningStopped&) {  // the others wait for the plan
      if (peers_ == nullptr) {
        throw;
      }
      first.stopped = peers_->stop_reason();
    }
  }
  if (peers_ != nullptr) {
    first = peers_->from_first(first);
  }
  if (first.stopped != 0) {
    peers_->end_for_first(first.stopped);
    throw lms::PlanningStopped();
  }
  if (!first.failure.empty()) {
    throw DoesNotFit(first.failure);
  }
  return first;
}

std::vector<std::string> Team::take_notes() {
  std::vector<std::string> notes;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    const RankContext& context = context_of(*rank);
    const KernelTuning& tuning = context.backend.tuning;
    std::vector<std::string> own =
        tuning.take_notes ? tuning.take_notes() : std::vector<std::string>();
    std::ranges::move(rank->session->take_notes(), std::back_inserter(own));
    for (std::string& note : own) {
      notes.push_back(ranks_.size() == 1 ? std::move(note)
                                         : fmt::format("rank {}: {}", context.rank, note));
    }
  }
  return notes;
}

}  // namespace cnn::bench
