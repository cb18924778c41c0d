#include "lms/series_search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "lms/bound.h"
#include "lms/task_graph.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

// Returns whether a budget is near the smallest one: there plans differ most.
bool is_near(std::size_t bytes, std::size_t smallest) {
  constexpr double ratio = 1.6;
  return static_cast<double>(bytes) <= ratio * static_cast<double>(smallest);
}

// Far from the smallest budget, one budget in so many is searched anew.
constexpr std::size_t stride = 4;

// Returns the budgets of the series that are near or at most `last`, and one stride more,
// ascending: dense near the smallest, where little memory saves much time.
std::vector<std::size_t> budget_series(std::size_t smallest, std::size_t last) {
  std::vector<std::size_t> series;
  double ratio = 1;
  const auto bytes = [&] {
    return static_cast<std::size_t>(static_cast<double>(smallest) * ratio) / alignment * alignment;
  };
  const auto add = [&] {
    series.push_back(bytes());
    constexpr double near = 1.1, near_step = 1.04, far_step = 1.03;
    ratio *= ratio < near ? near_step : far_step;
  };
  while (series.empty() || is_near(bytes(), series.front()) || bytes() <= last) {
    add();
  }
  for (std::size_t larger = 0; larger < stride; ++larger) {
    add();
  }
  return series;
}

constexpr std::size_t rounds = 3;  // of a bisection between two near budgets

// Each near budget and every fourth other one are searched anew: from simple plans, and each near
// one also from the plan for the one above. The others begin with the plan of the nearest of these
// below, which fits there too, and improve it. Each search is a task, so that those which nothing
// waits for run beside others: while the largest budget is searched, other processors begin with
// smaller ones. A search ends as soon as its lower bound says that the fastest plan so far beats it
// and all that need its result.
//
// Where lower bounds rule out no budget, plans by live bytes do, which take a small part of the
// time: less memory should not make a plan faster. So plans that are faster than nine tenths of
// what the budgets above reach by live bytes are rejected, whatever the request, and a search is
// left out if the fastest plan so far beats those that are not.
class SeriesSearch {
 public:
  SeriesSearch(const Request& request, const PlanningProblem& problem, const SearchedPlan& smallest)
      : request_(request),
        problem_(problem),
        smallest_(smallest),
        bounds_(request),
        series_(budget_series(smallest.placed.outcome.device_bytes, request.budget.device)),
        count_(static_cast<std::size_t>(std::ranges::upper_bound(series_, request.budget.device) -
                                        series_.begin())),
        near_(static_cast<std::size_t>(std::ranges::count_if(
            series_, [&](std::size_t bytes) { return is_near(bytes, series_.front()); }))),
        simple_(series_.size()),
        below_(near_),
        full_(series_.size()),
        refined_(series_.size()),
        between_(near_),
        fastest_seconds_(request.useful_seconds) {}

  PlacedPlan fastest(std::size_t threads) {
    SearchedPlan best = smallest_;
    if (count_ == 0 || bounds_.seconds(series_[count_ - 1]) >= request_.useful_seconds) {
      return best.placed;
    }
    publish(smallest_);
    add_tasks();
    run_tasks(tasks_, threads);
    for (SearchedPlan* plan : in_order_of_preference()) {
      if (is_within_budget(plan->placed.outcome) &&
          plan->placed.outcome.seconds < best.placed.outcome.seconds) {
        best = std::move(*plan);
      }
    }
    return std::move(best.placed);
  }

 private:
  // A budget between two of the series, its plan by live bytes, and the placed plan.
  struct Between {
    std::size_t bytes = 0;
    std::optional<Solution> found;
    std::optional<SearchedPlan> plan;
  };

  bool is_next_near(std::size_t i) const { return i + 1 < near_; }
  bool starts_from_simple_plans(std::size_t i) const {
    return is_next_near(i) || (i >= near_ && i % stride == 0);
  }
  bool starts_anew(std::size_t i) const { return i < near_ || starts_from_simple_plans(i); }
  std::size_t full_below(std::size_t i) const { return starts_anew(i) ? i : full_below(i - 1); }
  std::size_t full_above(std::size_t i) const {
    return starts_anew(i + 1) ? i + 1 : full_above(i + 1);
  }
  // Returns the largest budget whose plan continues that for this one.
  std::size_t last_from(std::size_t i) const {
    std::size_t last = i;
    while (last + 1 < count_ && !starts_anew(last + 1)) {
      ++last;
    }
    return last;
  }
  // Returns the largest bytes that a search from the near budget's plan by live bytes may lead to.
  std::size_t last_below(std::size_t i) const {
    return is_next_near(i) ? std::min(series_[i + 1] - alignment, request_.budget.device)
                           : series_[std::min(last_from(i), count_ - 1)];
  }

  // Returns the seconds below which plans for this budget, and those that continue them, are
  // rejected: a share of what live bytes permit there and at the next larger budget that is
  // searched anew, for near budgets at the largest of them. Needs their plans by live bytes.
  double least_seconds(std::size_t i) const {
    const auto estimate = [&](std::size_t budget) {
      const Evaluation& live = found(budget).evaluation;
      return live.fits ? fastest_of_live * live.seconds : 0;
    };
    return is_next_near(i) ? estimate(near_ - 1) : std::min(estimate(i), estimate(full_above(i)));
  }

  // The goal of a search for these bytes whose result is of use for budgets up to `last` bytes and
  // takes no less than `least` seconds.
  SearchGoal goal(std::size_t bytes, std::size_t last, double least = 0) {
    return {.device_bytes = bytes,
            .bound_seconds = bounds_.seconds(bytes),
            .least_seconds = least,
            .rival = {.seconds = &fastest_seconds_,
                      .bound_seconds = std::max(bounds_.seconds(last), least)}};
  }
  // The goal of a search whose plan no other search continues.
  SearchGoal last_goal(std::size_t bytes, double least) {
    SearchGoal result = goal(bytes, bytes, least);
    result.useful_seconds = &fastest_seconds_;
    return result;
  }

  // Adds a task that computes a result unless it is overtaken, and returns its number.
  template <typename Result, typename Compute>
  std::size_t add_task(std::optional<Result>& result, const std::vector<std::size_t>& needs,
                       Compute compute) {
    tasks_.push_back({.run =
                          [&result, compute] {
                            try {
                              result = compute();
                            } catch (const SearchOvertaken&) {
                              // The result stays empty.
                            }
                          },
                      .needs = needs});
    return tasks_.size() - 1;
  }

  // Adds a task whose placed plan all searches hear of.
  template <typename Compute>
  std::size_t add_plan(std::optional<SearchedPlan>& plan, const std::vector<std::size_t>& needs,
                       Compute compute) {
    return add_task(plan, needs, [this, compute] {
      SearchedPlan found = compute();
      publish(found);
      return found;
    });
  }

  // The largest budget comes first, since its plan overtakes most others, then the longest path:
  // down the near budgets.
  void add_tasks() {
    simple_task_.resize(series_.size());
    below_task_.resize(near_);
    full_task_.resize(series_.size());
    const std::size_t first = full_below(count_ - 1);
    const bool is_far = first >= near_;
    if (is_far) {
      add_simple(first);
    }
    if (!is_next_near(first)) {
      add_simple(full_above(first));
    }
    if (is_far) {
      add_full(first);
      add_refined(first);
    }
    for (std::size_t i = near_; i-- > 0;) {
      add_below(i);
    }
    for (std::size_t i = count_; i-- > 0;) {
      const bool is_added = is_far && i == first;
      if (!is_added && starts_from_simple_plans(i)) {
        add_simple(i);
      }
      if (!is_added && starts_anew(i)) {
        add_full(i);
        add_refined(i);
      }
      if (is_next_near(i)) {
        add_between(i);
      }
    }
  }

  void add_simple(std::size_t i) {
    const Needs needs = is_next_near(i) ? Needs{below_task_[near_ - 1]} : Needs{};
    simple_task_[i] = add_task(simple_[i], needs, [this, i] {
      const double least = is_next_near(i) ? least_seconds(i) : 0;
      return search_live(request_, problem_, goal(series_[i], series_[last_from(i)], least));
    });
  }

  void add_below(std::size_t i) {
    const bool is_largest = !is_next_near(i);
    below_task_[i] = add_task(
        below_[i], is_largest ? Needs{} : Needs{below_task_[i + 1]}, [this, i, is_largest] {
          require(is_largest || below_[i + 1]);
          const double least = is_largest ? 0 : least_seconds(i);
          return search_live(request_, problem_, goal(series_[i], last_below(i), least),
                             is_largest ? nullptr : &*below_[i + 1]);
        });
  }

  void add_full(std::size_t i) {
    Needs needs;
    if (i < near_) {
      needs.push_back(below_task_[i]);
    }
    if (starts_from_simple_plans(i)) {
      needs.push_back(*simple_task_[i]);
    }
    if (!is_next_near(i)) {
      needs.push_back(*simple_task_[full_above(i)]);
    }
    full_task_[i] = add_plan(full_[i], needs, [this, i] {
      const double least = least_seconds(i);
      const SearchGoal wanted = is_next_near(i) ? last_goal(series_[i], least)
                                                : goal(series_[i], series_[last_from(i)], least);
      return search_budget(request_, problem_, smallest_, found(i), wanted);
    });
  }

  // Adds the searches that continue a plan.
  void add_refined(std::size_t i) {
    for (std::size_t larger = last_from(i); larger > i; --larger) {
      add_plan(refined_[larger], {full_task_[i]}, [this, i, larger] {
        require(full_[i].has_value());
        return refine_plan(request_, problem_, *full_[i],
                           last_goal(series_[larger], least_seconds(i)));
      });
    }
  }

  // Adds the searches between a near budget and the one above.
  void add_between(std::size_t i) {
    tasks_.push_back(
        {.run = [this, i] { find_between(i); }, .needs = {below_task_[i], below_task_[i + 1]}});
    const std::size_t jump = tasks_.size() - 1;
    for (Between& one : between_[i]) {
      add_plan(one.plan, {jump}, [this, &one, i] {
        require(one.found.has_value());
        return search_budget(request_, problem_, smallest_, std::move(*one.found),
                             last_goal(one.bytes, least_seconds(i)));
      });
    }
  }

  // Where a near budget of the series has a far slower plan than the one above, some operation
  // needs bytes that lie between both: finds budgets there, by bisection, whose plans by live bytes
  // are as fast as the latter's rather than the former's. They depend on these two alone, and so
  // are the same for every request.
  void find_between(std::size_t i) {
    if (!below_[i] || !below_[i + 1]) {
      return;
    }
    const double slow = below_[i]->evaluation.seconds, fast = below_[i + 1]->evaluation.seconds;
    constexpr double far_slower = 1.1;
    if (!below_[i + 1]->evaluation.fits || slow <= far_slower * fast) {
      return;
    }
    std::size_t low = series_[i], high = series_[i + 1];
    const Solution* above = &*below_[i + 1];
    std::vector<Between> all;
    all.reserve(rounds);
    try {
      for (std::size_t r = 0; r < rounds; ++r) {
        const std::size_t middle = (low + high) / 2 / alignment * alignment;
        Solution solution =
            search_live(request_, problem_, goal(middle, last_below(i), least_seconds(i)), above);
        if (solution.evaluation.fits && solution.evaluation.seconds < std::sqrt(slow * fast)) {
          all.push_back({.bytes = middle, .found = std::move(solution), .plan = {}});
          above = &*all.back().found;
          high = middle;
        } else {
          low = middle;
        }
      }
    } catch (const SearchOvertaken&) {
      // No plan for a budget between these two can be the fastest any more.
    }
    std::size_t count = 0;
    for (Between& one : all) {
      if (one.bytes <= request_.budget.device) {
        between_[i].at(count++) = std::move(one);
      }
    }
  }

  // Returns the faster of the plans by live bytes that a budget starts from.
  const Solution& found(std::size_t i) const {
    const std::optional<Solution>* below = i < near_ ? &below_[i] : nullptr;
    require((below == nullptr || *below) && (!starts_from_simple_plans(i) || simple_[i]));
    if (below == nullptr || (simple_[i] && !is_better(**below, *simple_[i]))) {
      return *simple_[i];
    }
    return **below;
  }

  static bool is_better(const Solution& one, const Solution& other) {
    return !other.evaluation.fits ||
           (one.evaluation.fits && one.evaluation.seconds < other.evaluation.seconds);
  }

  // Ends a search that would begin with the result of one that was overtaken.
  static void require(bool result) {
    if (!result) {
      throw SearchOvertaken();
    }
  }

  bool is_within_budget(const Outcome& outcome) const {
    return outcome.device_bytes <= request_.budget.device &&
           outcome.host_bytes <= request_.budget.host;
  }

  // Tells all searches of a plan. The result does not depend on when they hear of it: what they
  // then leave out would be slower.
  void publish(const SearchedPlan& plan) {
    const Outcome& outcome = plan.placed.outcome;
    double known = fastest_seconds_;
    while (is_within_budget(outcome) && outcome.seconds < known &&
           !fastest_seconds_.compare_exchange_weak(known, outcome.seconds)) {
    }
  }

  // Returns all plans; of equally fast ones the first is preferred.
  std::vector<SearchedPlan*> in_order_of_preference() {
    std::vector<SearchedPlan*> plans;
    const auto add = [&](std::optional<SearchedPlan>& plan) {
      if (plan) {
        plans.push_back(&*plan);
      }
    };
    add(starts_anew(count_ - 1) ? full_[count_ - 1] : refined_[count_ - 1]);
    for (std::size_t i = count_; i-- > 0;) {
      add(full_[i]);
    }
    for (std::size_t i = near_; i-- > 0;) {
      for (Between& one : between_[i]) {
        add(one.plan);
      }
    }
    for (std::size_t i = count_; i-- > 0;) {
      add(refined_[i]);
    }
    return plans;
  }

  using Needs = std::vector<std::size_t>;

  const Request& request_;
  const PlanningProblem& problem_;
  const SearchedPlan& smallest_;
  BudgetBounds bounds_;
  std::vector<std::size_t> series_;
  std::size_t count_;  // of the series, up to the request's budget
  std::size_t near_;   // of the series
  // Results of the tasks; empty: overtaken.
  std::vector<std::optional<Solution>> simple_;       // by budget: from simple plans
  std::vector<std::optional<Solution>> below_;        // by near budget: from the one above
  std::vector<std::optional<SearchedPlan>> full_;     // by budget: searched from the start
  std::vector<std::optional<SearchedPlan>> refined_;  // by budget: from the plan of a smaller one
  std::vector<std::array<Between, rounds>> between_;  // by near budget: above it
  std::vector<Task> tasks_;
  std::vector<std::optional<std::size_t>> simple_task_;  // by budget: number of the task
  std::vector<std::size_t> below_task_, full_task_;      // by budget
  std::atomic<double> fastest_seconds_;  // of a plan within the request's budget, of any form
};

}  // namespace

PlacedPlan fastest_of_series(const Request& request, const PlanningProblem& problem,
                             const SearchedPlan& smallest, std::size_t threads) {
  return SeriesSearch(request, problem, smallest).fastest(threads);
}

}  // namespace cnn::lms
