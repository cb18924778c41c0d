#include "lms/budget_search.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

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

// Returns the number of the node or the tensor of an action.
std::size_t id_of(const Action& action) {
  return std::visit(
      [](const auto& what) {
        if constexpr (requires { what.node; }) {
          return index_of(what.node);
        } else {
          return index_of(what.tensor);
        }
      },
      action);
}

bool is_equal(const Schedule& a, const Schedule& b) {
  return std::ranges::equal(a.steps, b.steps, [](const Step& one, const Step& other) {
    return one.action.index() == other.action.index() && id_of(one.action) == id_of(other.action) &&
           one.lane == other.lane && one.after == other.after;
  });
}

// Returns the seconds at which a longer search gains nothing: those close to the bound.
double good_enough(const SearchGoal& goal) {
  constexpr double near = 1.003;
  return near * goal.bound_seconds;
}

// The search counts live bytes. Placing them takes slightly more, which the next attempt subtracts
// from its target.
class BudgetSearch {
 public:
  BudgetSearch(const Request& request, const PlanningProblem& problem, const SearchGoal& goal)
      : request_(request),
        problem_(problem),
        budget_(goal.device_bytes),
        good_enough_(good_enough(goal)),
        useful_seconds_(goal.useful_seconds),
        rival_(goal.rival),
        fixed_(problem.roots.size()),
        least_seconds_(goal.least_seconds) {}

  SearchedPlan run(const SearchedPlan& smallest, Solution found) {
    if (!limit_to_useful(found)) {
      return smallest;
    }
    approach(found);
    if (!fits_ && found.evaluation.fits) {
      place_later(found.decisions);
    }
    if (!fits_ && found.evaluation.fits) {
      start_lower();
    }
    if (!fits_) {
      accept_if_better(smallest.placed, smallest.decisions);
      place({.decisions = smallest.decisions, .evaluation = {}}, budget_);
      const Solution near =
          find({.device_bytes = budget_, .work = work(), .start = &smallest.decisions});
      approach(near);
      found = found.evaluation.fits ? found : near;
    }
    if (found.evaluation.fits && is_far()) {
      merge(found.decisions);
    }
    return best_.schedule.steps.empty() ? smallest : take_best();
  }

  // Improves a plan for a smaller budget. If that is as fast as any, only what this budget requires
  // still moves.
  SearchedPlan refine(const SearchedPlan& start) {
    best_ = start.placed;
    best_decisions_ = start.decisions;
    fits_ = is_within_budget(best_.outcome);
    if (best_.outcome.seconds <= good_enough_) {
      move_less();
      return take_best();
    }
    const Solution found = neighbour(budget_, work() / 4);
    if (!limit_to_useful(found)) {
      return take_best();
    }
    approach(found);
    if (found.evaluation.fits && is_far()) {
      merge(found.decisions);
    }
    return take_best();
  }

  // Places the plan with the fewest bytes that its copies permit.
  SearchedPlan smallest(const Solution& found) {
    place(found, 0);
    return take_best();
  }

 private:
  // Sets the seconds below which this search rejects plans, from one that fits by its live bytes,
  // and returns whether the others may be as fast as the plan of another budget. Later attempts may
  // find faster plans, down to fastest_of_live; still faster ones are rejected even where the
  // search goes on: so one that is left out misses nothing, and more memory is never slower.
  bool limit_to_useful(const Solution& found) {
    if (useful_seconds_ == nullptr || !found.evaluation.fits) {
      return true;
    }
    least_seconds_ = std::max(least_seconds_, fastest_of_live * found.evaluation.seconds);
    return least_seconds_ <= *useful_seconds_;
  }

  // Keeps the tensors whose moves gain no time, unless the plan is slower once it is placed.
  void move_less() {
    latest_ = best_decisions_;
    const Solution fewer =
        find({.device_bytes = budget_, .work = 0, .start = &latest_, .prune_moves = true});
    PlacedPlan before = std::exchange(best_, {});
    const bool did_fit = std::exchange(fits_, false);
    place(fewer, budget_);
    if (!fits_ || best_.outcome.seconds > before.outcome.seconds) {
      best_ = std::move(before);
      best_decisions_ = latest_;
      fits_ = did_fit;
    }
  }

  bool is_done() const {
    constexpr double as_evaluated = 1.004;
    return fits_ && best_.outcome.seconds <= as_evaluated * evaluated_;
  }

  // Returns whether placement costs so much time that taking over single decisions is worth it.
  bool is_far() const {
    constexpr double much = 1.03;
    return fits_ && best_.outcome.seconds > much * evaluated_;
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
      target -= std::clamp(over, target / 200, target / 30);
      latest_ = found.decisions;
      found = find({.device_bytes = target,
                    .work = work() / 4,
                    .temperature = temperature,
                    .start = &latest_});
    }
  }

  // Searches near the best plan, but for single changes that do not fit once they are placed.
  Solution neighbour(std::size_t target, std::size_t work) {
    latest_ = best_decisions_;
    Solution found =
        find({.device_bytes = target, .work = work, .start = &latest_, .fixed = fixed_});
    if (found.evaluation.fits) {
      evaluated_ = evaluated_ > 0 ? std::min(evaluated_, found.evaluation.seconds)
                                  : found.evaluation.seconds;
    }
    return found;
  }

  // Returns the roots with other decisions, in the order of their uses in the backward pass.
  std::vector<std::uint32_t> differing(const TensorDecisions& a, const TensorDecisions& b) const {
    std::vector<std::uint32_t> roots;
    for (std::uint32_t r = 0; r < a.size(); ++r) {
      if (a[r] != b[r]) {
        roots.push_back(r);
      }
    }
    std::ranges::stable_sort(roots, {}, [&](std::uint32_t r) {
      const std::vector<std::uint32_t>& uses = problem_.roots[r].backward_uses;
      return uses.empty() ? 0 : uses.front();
    });
    return roots;
  }

  // Takes over as many decisions of a plan that is faster, but does not fit once it is placed, as
  // the best plan permits: halves the set of decisions that differ until they fit. Rejects a merged
  // plan that is faster than that one, for the reason that limit_to_useful() gives.
  void merge(const TensorDecisions& faster) {
    constexpr int attempts = 32;
    const bool is_useful = useful_seconds_ == nullptr || evaluated_ <= *useful_seconds_;
    if (!fits_ || best_decisions_.empty() || is_done() || !is_useful) {
      return;
    }
    least_seconds_ = std::max(least_seconds_, evaluated_);
    const std::vector<std::uint32_t> roots = differing(faster, best_decisions_);
    TensorDecisions merged = best_decisions_;
    std::vector<std::span<const std::uint32_t>> open{roots};
    for (int a = 0; a < attempts && !open.empty(); ++a) {
      const std::span<const std::uint32_t> part = open.back();
      open.pop_back();
      TensorDecisions tried = merged;
      for (const std::uint32_t r : part) {
        tried[r] = faster[r];
      }
      if (fits_live(tried) && fits_placed(tried)) {
        merged = std::move(tried);
      } else if (part.size() > 1) {
        open.push_back(part.last(part.size() / 2));
        open.push_back(part.first(part.size() - part.size() / 2));
      } else if (!part.empty()) {
        fixed_[part.front()] = 1;
      }
    }
    release(merged);
  }

  // Ends the search between two placements; search() asks between two evaluations.
  void check_stopped() const {
    if (request_.stopped != nullptr && request_.stopped()) {
      throw PlanningStopped();
    }
    if (rival_.wins()) {
      throw SearchOvertaken();
    }
  }

  // Returns whether the plan fits once it is placed, with copies back as late as possible.
  bool fits_placed(const TensorDecisions& decisions) {
    check_stopped();
    ScheduleExpander expander(problem_);
    Evaluator evaluator(problem_, 0, request_.options.sync_mode);
    const ExpandedSchedule& expanded = expander.expand(decisions);
    evaluator.evaluate(expanded);
    return outcome(schedule_of(request_, problem_, expanded, evaluator)).device_bytes <= budget_;
  }

  bool fits_live(const TensorDecisions& decisions) const {
    ScheduleExpander expander(problem_);
    return Evaluator(problem_, budget_, request_.options.sync_mode)
        .estimate(expander.expand(decisions), 0)
        .fits;
  }

  Solution find(SearchOptions options) const {
    options.good_enough = good_enough_;
    options.rival = rival_;
    return lms::find(request_, problem_, options);
  }

  // Places the plan with copies back as early as the target permits. Returns the fewest bytes.
  std::size_t place(const Solution& found, std::size_t target) {
    ScheduleExpander expander(problem_);
    Evaluator evaluator(problem_, target, request_.options.sync_mode);
    return place(found.decisions, expander.expand(found.decisions), evaluator);
  }

  // Places the schedule that the evaluator makes of a plan.
  std::size_t place(const TensorDecisions& decisions, const ExpandedSchedule& expanded,
                    Evaluator& evaluator) {
    // The share of the step by which copies end earlier than needed. None: as early as memory
    // permits.
    constexpr std::array<std::optional<double>, 2> slacks{std::nullopt, 0.01};
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const std::optional<double>& slack : slacks) {
      check_stopped();
      const double seconds = evaluator.evaluate(expanded).seconds;
      if (slack) {
        evaluator.tighten(expanded, *slack * seconds);
      }
      PlacedPlan plan{.schedule = with_disk_tier(
                          request_, schedule_of(request_, problem_, expanded, evaluator)),
                      .outcome = {},
                      .enough = budget_};
      plan.outcome = outcome(plan.schedule);
      least = std::min(least, plan.outcome.device_bytes);
      accept_if_better(std::move(plan), decisions);
      if (evaluator.swap_outs().empty() || is_done()) {
        break;  // all placements are equal, or tighter copies gain nothing
      }
    }
    return least;
  }

  // Returns the outcome of a schedule within the budget. Attempts repeat many schedules, and
  // placing one takes far longer than finding it among those that are placed.
  const Outcome& outcome(const Schedule& schedule) {
    const auto known = std::ranges::find_if(
        known_, [&](const Known& one) { return is_equal(one.schedule, schedule); });
    if (known != known_.end()) {
      return known->outcome;
    }
    known_.push_back({schedule, outcome_of(request_, schedule, budget_)});
    return known_.back().outcome;
  }

  // Places a plan with as much of the budget for early copies as placement permits everywhere.
  // Returns the bytes that are kept from them.
  std::size_t place_later(const TensorDecisions& decisions) {
    constexpr std::array<double, 6> shares{0, 0.03, 0.07, 0.13, 0.25, 1};  // of the budget
    ScheduleExpander expander(problem_);
    const ExpandedSchedule& expanded = expander.expand(decisions);
    Evaluator evaluator(problem_, budget_, request_.options.sync_mode);
    for (const double share : shares) {
      const auto kept = static_cast<std::size_t>(share * static_cast<double>(budget_));
      evaluator.reserve(std::vector<std::size_t>(expanded.steps.size(), kept));
      if (place(decisions, expanded, evaluator) <= budget_) {
        return kept;
      }
    }
    return budget_;
  }

  // Places a plan that fits at least with late copies, then lets copies fill all of the budget in
  // as many parts of the step as placement permits.
  void release(const TensorDecisions& decisions) {
    constexpr int attempts = 20;
    constexpr std::size_t parts = 32;
    const std::size_t kept = place_later(decisions);
    ScheduleExpander expander(problem_);
    const ExpandedSchedule& expanded = expander.expand(decisions);
    Evaluator evaluator(problem_, budget_, request_.options.sync_mode);
    const std::size_t count = expanded.steps.size();
    const auto fits = [&](const std::vector<std::size_t>& reserved) {
      evaluator.reserve(reserved);
      return place(decisions, expanded, evaluator) <= budget_;
    };
    std::vector<std::size_t> reserved(count, kept);
    using Part = std::pair<std::size_t, std::size_t>;
    std::vector<Part> open{{count / 2, count}, {0, count / 2}};
    for (int a = 0; a < attempts && !open.empty() && !is_done(); ++a) {
      const auto [first, last] = open.back();
      open.pop_back();
      std::vector<std::size_t> tried = reserved;
      std::fill(tried.begin() + static_cast<std::ptrdiff_t>(first),
                tried.begin() + static_cast<std::ptrdiff_t>(last), 0);
      if (tried != reserved && fits(tried)) {
        reserved = std::move(tried);
      } else if (tried != reserved && last - first > count / parts) {
        const std::size_t middle = (first + last) / 2;
        open.emplace_back(middle, last);
        open.emplace_back(first, middle);
      }
    }
  }

  void accept_if_better(PlacedPlan plan, const TensorDecisions& decisions) {
    const Outcome& outcome = plan.outcome;
    const bool fits = is_within_budget(outcome);
    if (outcome.seconds < least_seconds_) {
      return;
    }
    if (best_.schedule.steps.empty() ||
        (fits && (!fits_ || outcome.seconds < best_.outcome.seconds)) ||
        (!fits && !fits_ && outcome.device_bytes < best_.outcome.device_bytes)) {
      best_ = std::move(plan);
      best_decisions_ = decisions;
      fits_ = fits;
    }
  }

  bool is_within_budget(const Outcome& outcome) const {
    return outcome.device_bytes <= budget_ && outcome.host_bytes <= request_.budget.host;
  }

  SearchedPlan take_best() {
    return {.decisions = std::move(best_decisions_), .placed = std::move(best_)};
  }

  std::size_t work() const { return work_of(problem_); }

  struct Known {
    Schedule schedule;
    Outcome outcome;
  };

  const Request& request_;
  const PlanningProblem& problem_;
  std::size_t budget_;
  double good_enough_;
  const std::atomic<double>* useful_seconds_;
  Rival rival_;
  TensorDecisions latest_;
  PlacedPlan best_;
  TensorDecisions best_decisions_;
  std::vector<std::uint8_t> fixed_;  // by root: a change alone does not fit once it is placed
  bool fits_ = false;
  double evaluated_ = 0;
  double least_seconds_;      // faster plans are rejected
  std::vector<Known> known_;  // placed schedules
};

}  // namespace

SearchedPlan minimize_memory(const Request& request, const PlanningProblem& problem) {
  return BudgetSearch(request, problem, {})
      .smallest(find(request, problem, {.minimize_memory = true, .work = work_of(problem)}));
}

Solution search_live(const Request& request, const PlanningProblem& problem, const SearchGoal& goal,
                     const Solution* larger) {
  const std::size_t work = work_of(problem);
  return find(request, problem,
              {.device_bytes = goal.device_bytes,
               .good_enough = good_enough(goal),
               .work = larger == nullptr ? work : work / 2,
               .start = larger == nullptr ? nullptr : &larger->decisions,
               .rival = goal.rival});
}

SearchedPlan search_budget(const Request& request, const PlanningProblem& problem,
                           const SearchedPlan& smallest, Solution found, const SearchGoal& goal) {
  return BudgetSearch(request, problem, goal).run(smallest, std::move(found));
}

SearchedPlan refine_plan(const Request& request, const PlanningProblem& problem,
                         const SearchedPlan& start, const SearchGoal& goal) {
  return BudgetSearch(request, problem, goal).refine(start);
}

}  // namespace cnn::lms
