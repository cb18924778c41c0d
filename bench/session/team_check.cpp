// The part of Team that checks the results of its ranks.
#include <algorithm>
#include <fmt/format.h>

#include "bench/flags/conditions.h"
#include "bench/plan/job.h"
#include "bench/ranks/peers.h"
#include "bench/ranks/rank_consistency.h"
#include "bench/session/rank_check.h"
#include "bench/session/session.h"
#include "bench/session/step_samples.h"
#include "bench/session/team.h"
#include "bench/session/team_rank.h"

namespace cnn::bench {

void Team::start_checks() {
  const Config& config = *job_.config;
  const bool repeats = repeats_on_all_ranks(config);
  if (job_.mode == Mode::evaluation) {
    return;  // it has no step that these checks look at; notices have said so
  }
  if (!config.report.hash_file && !repeats && !flips_a_bit(config.comm.fault) &&
      !config.report.check_finite_step) {
    return;
  }
  check_fault_rank(config, job_.ranks);
  check(
      !repeats || job_.ranks > 1,
      "--comm_check=majority compares ranks, and this is one: start several, such as mpirun -np 3");
  each([&](Rank& rank) {
    rank.check =
        std::make_unique<RankCheck>(config, context_of(rank), is_first(rank), rank.session->main());
  });
  if (repeats) {
    const std::string difference =
        first_difference(of_all_ranks([](Rank& rank) { return rank.check->environment_text(); }));
    check(difference.empty(), "--comm_check=majority: " + difference);
  }
}

void Team::start_samples() {
  const Config& config = *job_.config;
  if (!writes_summaries(config) || config.report.summaries.verbosity < 2 ||
      !is_first(*ranks_.front())) {
    return;
  }
  only(*ranks_.front(), [&](Rank& rank) {
    const bool all = config.report.summaries.verbosity > 2;
    StepRunner& runner = rank.session->main();
    rank.samples = std::make_unique<StepSamples>(
        runner.plan(), context_of(rank).backend,
        all ? StepSamples::Detail::all : StepSamples::Detail::gradients_together);
    runner.observe(*rank.samples);
  });
}

// Steps with observers are enqueued. A collective exchange does not mix ranks that enqueue a step
// with ranks that replay it, so that all enqueue it if one does.
void Team::equalize_recording() {
  if (job_.mode == Mode::evaluation || !context_of(*ranks_.front()).collective_exchange) {
    return;
  }
  const std::vector<int> observed =
      of_all_ranks([](Rank& rank) { return int{rank.session->main().is_observed()}; });
  if (std::ranges::count(observed, 1) > 0) {
    each([](Rank& rank) { rank.session->main().stop_recording(); });
  }
}

void Team::want_samples(bool wanted) { wants_samples_ = wanted; }

const StepSamples* Team::samples() const { return ranks_.front()->samples.get(); }

void Team::read_saved(const std::function<bool(const TensorInfo&)>& wanted,
                      const std::function<void(const TensorInfo&, std::span<const float>)>& tell) {
  only(*ranks_.front(), [&](Rank& rank) { rank.session->read_saved(wanted, tell); });
}

FirstNonFinite Team::first_non_finite(Which which) {
  const auto is_checked = [&](const Rank& rank) {
    return which == Which::main && rank.check && rank.check->finite() != nullptr &&
           rank.check->finite()->has_checked();
  };
  const std::vector<std::string> found = of_all_ranks([&](Rank& rank) {
    const StepRunner& runner = which == Which::evaluation ? *rank.evaluation : rank.session->main();
    const std::optional<NonFiniteTensor> tensor =
        is_checked(rank) ? rank.check->finite()->first() : runner.first_non_finite();
    return tensor ? to_string(*tensor) : std::string();
  });
  FirstNonFinite first{.of_whole_step = is_checked(*ranks_.front())};
  const auto rank = std::ranges::find_if(found, [](const auto& name) { return !name.empty(); });
  if (rank != found.end()) {
    first.tensor =
        found.size() == 1 ? *rank : fmt::format("{} of rank {}", *rank, rank - found.begin());
  }
  return first;
}

const TensorHashes* Team::hashes() const {
  const std::unique_ptr<RankCheck>& check = ranks_.front()->check;
  return check ? check->hashes() : nullptr;
}

const TensorHashes* Team::hashed_tensors() const {
  const std::unique_ptr<RankCheck>& check = ranks_.front()->check;
  return check ? check->hashed_tensors() : nullptr;
}

// Returns a word that is equal in two processes if all of their ranks have equal hashes.
std::uint64_t Team::own_word() const {
  if (!repeats_on_all_ranks(*job_.config) || hashes() == nullptr) {
    return 0;
  }
  const std::uint64_t first = hashes()->combined();
  std::uint64_t word = first;
  for (const std::unique_ptr<Rank>& rank : ranks_) {
    const std::uint64_t own = rank->check->hashes()->combined();
    word = own == first ? word : combine_hash(word, own);
  }
  return word;
}

// All processes learn in merged() whether all words are equal, so all reach the same conclusion.
void Team::compare_hashes(std::int64_t global_step) {
  if (!repeats_on_all_ranks(*job_.config) || hashes() == nullptr) {
    return;
  }
  const bool own_equal = own_word() == hashes()->combined();
  if (own_equal && (peers_ == nullptr || peers_->words_are_equal())) {
    return;
  }
  const std::vector<std::vector<TensorHash>> of_ranks =
      of_all_ranks([](Rank& rank) { return rank.check->hashes()->hashes(); });
  std::vector<std::string> hosts;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    hosts.push_back(host_of(rank));
  }
  throw RanksDiffer(difference_text(global_step, hashes()->tensors(), of_ranks, hosts));
}

}  // namespace cnn::bench
