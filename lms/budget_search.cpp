#include "lms/budget_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "lms/bound.h"
#include "lms/disk_tier.h"
#include "lms/evaluate.h"
#include "lms/expanded_schedule.h"

namespace cnn::lms {
namespace {

// Limits the evaluations: small steps need no more plans than large ones.
std::size_t work_of(const PlanningProblem& problem) {
  constexpr std::size_t most = 3'000'000, plans = 9'000;
  return std::min(most, plans * problem.steps.size());
}

Solution find(const Request& request, const PlanningProblem& problem, SearchOptions options) {
  options.sync = request.options.sync_mode;
  options.host_bytes = request.budget.swap_bytes();
  options.stopped = request.stopped;
  options.swaps = options.host_bytes > 0;
  options.drops = request.options.recompute != Recomputation::off;
  return search(problem, options);
}

// The search counts live bytes. Placing them takes slightly more, which the next attempt subtracts
// from its target.
class BudgetSearch {
 public:
  BudgetSearch(const Request& request, const PlanningProblem& problem, std::size_t device_bytes)
      : request_(request), problem_(problem), budget_(device_bytes) {}

  PlacedPlan run(const SmallestPlan& smallest) {
    constexpr double near = 1.003;  // of the bound: a longer search gains nothing
    good_enough_ = near * lower_bound_at(request_, budget_);
    const Solution first = find({.device_bytes = budget_, .work = work()});
    approach(first);
    if (!fits_ && first.evaluation.fits) {
      start_lower();
    }
    if (!fits_) {
      accept_if_better(smallest.placed);
      place({.decisions = smallest.decisions, .evaluation = {}}, budget_);
      approach(find({.device_bytes = budget_, .work = work(), .start = &smallest.decisions}));
    }
    return std::move(best_);
  }

  // Places the plan with the fewest bytes that its copies permit.
  PlacedPlan smallest(const Solution& found) {
    place(found, 0);
    return std::move(best_);
  }

 private:
  bool is_done() const {
    constexpr double as_evaluated = 1.004;
    return fits_ && best_.outcome.seconds <= as_evaluated * evaluated_;
  }

  // Moves from a plan to neighbours that need slightly less each time.
  void approach(Solution found) {
    constexpr int attempts = 6;
    constexpr double temperature = 0.003;
    evaluated_ =
        evaluated_ > 0 ? std::min(evaluated_, found.evaluation.seconds) : found.evaluation.seconds;
    std::size_t target = budget_;
    for (int a = 0; a < attempts && found.evaluation.fits; ++a) {
      // Continues from the unpruned plan: its extra moves leave room for changes.
      place(
          find({.device_bytes = target, .work = 0, .start = &found.decisions, .prune_moves = true}),
          target);
      if (is_done()) {
        return;
      }
      const std::size_t taken = place(found, target);
      if (is_done()) {
        return;
      }
      const std::size_t over = taken - std::min(taken, budget_);
      target -= std::clamp(over, target / 200, target / 60);
      latest_ = found.decisions;
      found = find({.device_bytes = target,
                    .work = work() / 4,
                    .temperature = temperature,
                    .start = &latest_});
    }
  }

  // Restarts with lower targets if no neighbour fits once it is placed.
  void start_lower() {
    constexpr int attempts = 4;
    std::size_t target = budget_;
    for (int a = 0; a < attempts && !fits_; ++a) {
      target -= target / 16;
      place(find({.device_bytes = target, .work = work()}), target);
    }
  }

  Solution find(SearchOptions options) const {
    options.good_enough = good_enough_;
    return lms::find(request_, problem_, options);
  }

  // Returns the bytes of the placed plan.
  std::size_t place(const Solution& found, std::size_t target) {
    // The share of the step by which copies end earlier than needed. None: as early as memory
    // permits.
    constexpr std::array<std::optional<double>, 2> slacks{std::nullopt, 0.01};
    ScheduleExpander expander(problem_);
    Evaluator evaluator(problem_, target, request_.options.sync_mode);
    const ExpandedSchedule& expanded = expander.expand(found.decisions);
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const std::optional<double>& slack : slacks) {
      const double seconds = evaluator.evaluate(expanded).seconds;
      if (slack) {
        evaluator.tighten(expanded, *slack * seconds);
      }
      PlacedPlan plan{.schedule = with_disk_tier(
                          request_, schedule_of(request_, problem_, expanded, evaluator)),
                      .outcome = {},
                      .enough = budget_};
      plan.outcome = outcome_of(request_, plan.schedule, plan.enough);
      least = std::min(least, plan.outcome.device_bytes);
      accept_if_better(std::move(plan));
      if (evaluator.swap_outs().empty() || is_done()) {
        break;  // all placements are equal, or tighter copies gain nothing
      }
    }
    return least;
  }

  void accept_if_better(PlacedPlan plan) {
    const Outcome& outcome = plan.outcome;
    const bool fits = outcome.device_bytes <= budget_ && outcome.host_bytes <= request_.budget.host;
    if (best_.schedule.steps.empty() ||
        (fits && (!fits_ || outcome.seconds < best_.outcome.seconds)) ||
        (!fits && !fits_ && outcome.device_bytes < best_.outcome.device_bytes)) {
      best_ = std::move(plan);
      fits_ = fits;
    }
  }

  std::size_t work() const { return work_of(problem_); }

  const Request& request_;
  const PlanningProblem& problem_;
  std::size_t budget_;
  TensorDecisions latest_;
  PlacedPlan best_;
  bool fits_ = false;
  double evaluated_ = 0, good_enough_ = 0;
};

}  // namespace

SmallestPlan minimize_memory(const Request& request, const PlanningProblem& problem) {
  const Solution found =
      find(request, problem, {.minimize_memory = true, .work = work_of(problem)});
  return {.decisions = found.decisions,
          .placed = BudgetSearch(request, problem, 0).smallest(found)};
}

PlacedPlan search_budget(const Request& request, const PlanningProblem& problem,
                         const SmallestPlan& smallest, std::size_t device_bytes) {
  return BudgetSearch(request, problem, device_bytes).run(smallest);
}

}  // namespace cnn::lms
