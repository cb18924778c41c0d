// The default policy: decides for each tensor that the forward pass writes for the backward pass
// whether it is kept, swapped or recomputed, by a search with exact evaluation.
//
// More memory is never slower, by construction. Searches are heuristic, so a search for a larger
// budget may end at a slower plan. They run only for budgets of one fixed series, which begins at
// the smallest feasible budget and depends on no other, and the plan for a budget is the fastest of
// all plans of the series up to it. Where plans of two near neighbours differ far, the series has
// more budgets between both. A budget whose lower bound is not below the fastest plan so far
// cannot have a faster plan and is skipped, with all smaller ones.
//
// A search that starts near the smallest budget begins with plans that are many times slower than
// the best one, and ends at a poor plan. So it goes there from above: from the largest of the near
// budgets, where the search is easy, down to each smaller one from the plan for the one above.
#include "lms/planned.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "lms/bound.h"
#include "lms/budget_search.h"
#include "lms/planning_problem.h"
#include "lms/policies.h"
#include "lms/python_text.h"
#include "lms/summary.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

// Returns whether a budget is near the smallest one: there plans differ most.
bool is_near(std::size_t bytes, std::size_t smallest) {
  constexpr double ratio = 1.6;
  return static_cast<double>(bytes) <= ratio * static_cast<double>(smallest);
}

// Returns the budgets of the series that are near or at most `last`, ascending: dense near the
// smallest, where little memory saves much time.
std::vector<std::size_t> budget_series(std::size_t smallest, std::size_t last) {
  std::vector<std::size_t> series;
  double ratio = 1;
  const auto bytes = [&] {
    return static_cast<std::size_t>(static_cast<double>(smallest) * ratio) / alignment * alignment;
  };
  while (series.empty() || is_near(bytes(), series.front()) || bytes() <= last) {
    series.push_back(bytes());
    constexpr double near = 1.1, near_step = 1.04, far_step = 1.03;
    ratio *= ratio < near ? near_step : far_step;
  }
  return series;
}

// Runs work(0), ..., work(count - 1) on all processors. The calls are independent, so the result
// does not depend on the number of processors.
void run_all(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    const std::size_t threads = std::min<std::size_t>(count, std::thread::hardware_concurrency());
    std::vector<std::jthread> workers;
    for (std::size_t t = 1; t < threads; ++t) {
      workers.emplace_back(run);
    }
    run();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
}

// Searches the budgets of the series. Every fourth one, and each of the near ones from the plan for
// the one above, are searched by themselves; the others begin with the plan of the nearest of these
// below, which fits there too, and improve it.
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
        below_(near_),
        full_(series_.size()),
        fastest_seconds_(request.useful_seconds),
        best_(smallest) {}

  PlacedPlan fastest() {
    if (count_ > 0 && bound(count_ - 1) < request_.useful_seconds) {
      search({count_ - 1});
      search(promising(true));
      search_jumps();
      search(promising(false));
    }
    return std::move(best_.placed);
  }

 private:
  // A budget between two of the series, and its plan by live bytes.
  struct Between {
    std::size_t bytes = 0;
    Solution found;
  };

  bool starts_from_simple_plans(std::size_t i) const {
    constexpr std::size_t stride = 4;
    return i % stride == 0;
  }
  bool starts_anew(std::size_t i) const { return i < near_ || starts_from_simple_plans(i); }
  std::size_t full_below(std::size_t i) const { return starts_anew(i) ? i : full_below(i - 1); }

  // The goal of a search whose plan no other search continues.
  SearchGoal last_goal(std::size_t bytes) {
    SearchGoal result = goal(bytes);
    result.useful_seconds = &fastest_seconds_;
    return result;
  }
  SearchGoal goal(std::size_t bytes) {
    return {.device_bytes = bytes, .bound_seconds = bounds_.seconds(bytes)};
  }
  double bound(std::size_t i) { return bounds_.seconds(series_[i]); }

  // Returns whether a budget may have a plan that is faster than the best one, as its bound says.
  bool is_promising(std::size_t bytes) {
    constexpr double rounding = 1e-9;
    return bounds_.seconds(bytes) <
           std::min(best_.placed.outcome.seconds, request_.useful_seconds) * (1 - rounding);
  }

  // Returns the budgets below the last that may be faster than the best plan: those that are
  // searched from the start, or all others.
  std::vector<std::size_t> promising(bool from_the_start) {
    const std::size_t least = first_promising();
    std::vector<std::size_t> found;
    for (std::size_t i = count_ - 1; i-- > least;) {
      if (starts_anew(i) == from_the_start) {
        found.push_back(i);
      }
    }
    return found;
  }

  // Where a bound says no, no smaller budget has a faster plan either, since the larger one has all
  // of its plans: bisection finds the first.
  std::size_t first_promising() {
    std::size_t least = 0, most = count_ - 1;  // it lies between both
    while (least < most) {
      const std::size_t middle = (least + most) / 2;
      if (is_promising(series_[middle])) {
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    return least;
  }

  // Where a near budget of the series has a far slower plan than the one above, some operation
  // needs bytes that lie between both: searches budgets there too. They depend on these two alone,
  // and so are the same for every request.
  void search_jumps() {
    std::vector<Between> between;
    for (std::size_t i = std::min(count_, near_ - 1);
         i-- > 0 && is_promising(series_[i + 1] - alignment);) {
      for (Between& one : jump(i)) {
        if (one.bytes <= request_.budget.device && is_promising(one.bytes)) {
          between.push_back(std::move(one));
        }
      }
    }
    std::vector<SearchedPlan> plans(between.size());
    run_all(between.size(), [&](std::size_t k) {
      plans[k] = search_budget(request_, problem_, smallest_, std::move(between[k].found),
                               last_goal(between[k].bytes));
      publish(plans[k]);
    });
    for (SearchedPlan& plan : plans) {
      accept(std::move(plan));
    }
  }

  // Returns the budgets, found by bisection, between a near one and the one above whose plans by
  // live bytes are as fast as the latter's rather than the former's.
  std::vector<Between> jump(std::size_t i) {
    walk_down(i);
    const double slow = below_[i]->evaluation.seconds, fast = below_[i + 1]->evaluation.seconds;
    constexpr double far_slower = 1.1;
    constexpr std::size_t rounds = 3;
    std::vector<Between> found;
    if (!below_[i + 1]->evaluation.fits || slow <= far_slower * fast) {
      return found;
    }
    std::size_t low = series_[i], high = series_[i + 1];
    const Solution* above = &*below_[i + 1];
    found.reserve(rounds);
    for (std::size_t r = 0; r < rounds; ++r) {
      const std::size_t middle = (low + high) / 2 / alignment * alignment;
      Solution solution = search_live(request_, problem_, goal(middle), above);
      if (solution.evaluation.fits && solution.evaluation.seconds < std::sqrt(slow * fast)) {
        found.push_back({middle, std::move(solution)});
        above = &found.back().found;
        high = middle;
      } else {
        low = middle;
      }
    }
    return found;
  }

  void search(const std::vector<std::size_t>& budgets) {
    std::vector<std::size_t> starts;
    for (const std::size_t i : budgets) {
      const std::size_t full = full_below(i);
      if (!full_[full] && std::ranges::find(starts, full) == starts.end()) {
        starts.push_back(full);
      }
    }
    const std::vector<Solution> found = search_live_all(starts);
    run_all(starts.size(), [&](std::size_t k) {
      const std::size_t i = starts[k];
      full_[i] = search_budget(request_, problem_, smallest_, found[k],
                               i + 1 < near_ ? last_goal(series_[i]) : goal(series_[i]));
      publish(*full_[i]);
    });
    std::vector<SearchedPlan> plans(budgets.size());
    run_all(budgets.size(), [&](std::size_t k) {
      const std::size_t i = budgets[k];
      const SearchedPlan& start = *full_[full_below(i)];
      plans[k] = full_below(i) == i ? start
                                    : refine_plan(request_, problem_, start, last_goal(series_[i]));
      publish(plans[k]);
    });
    for (std::size_t k = 0; k < budgets.size(); ++k) {
      accept(std::move(plans[k]));
    }
  }

  // Returns a plan by live bytes for each of these budgets: for every fourth one from simple plans,
  // for a near one also from the plan for the budget above, whichever is faster.
  std::vector<Solution> search_live_all(const std::vector<std::size_t>& budgets) {
    std::size_t least = near_;
    std::vector<std::size_t> simple;  // positions in budgets
    for (std::size_t k = 0; k < budgets.size(); ++k) {
      least = std::min(least, budgets[k]);
      if (starts_from_simple_plans(budgets[k])) {
        simple.push_back(k);
      }
    }
    std::vector<Solution> found(budgets.size());
    run_all(simple.size() + 1, [&](std::size_t task) {
      if (task == 0) {
        walk_down(least);
      } else {
        const std::size_t k = simple[task - 1];
        found[k] = search_live(request_, problem_, goal(series_[budgets[k]]));
      }
    });
    for (std::size_t k = 0; k < budgets.size(); ++k) {
      if (budgets[k] < near_ && is_better(*below_[budgets[k]], found[k])) {
        found[k] = *below_[budgets[k]];
      }
    }
    return found;
  }

  // other: may be empty, where nothing was searched.
  static bool is_better(const Solution& one, const Solution& other) {
    return other.decisions.empty() || !other.evaluation.fits ||
           (one.evaluation.fits && one.evaluation.seconds < other.evaluation.seconds);
  }

  // Searches the near budgets from the largest down to this one.
  void walk_down(std::size_t least) {
    for (std::size_t i = near_; i-- > least;) {
      if (!below_[i]) {
        const bool is_largest = i + 1 == near_;
        below_[i] = search_live(request_, problem_, goal(series_[i]),
                                is_largest ? nullptr : &*below_[i + 1]);
      }
    }
  }

  bool is_within_budget(const Outcome& outcome) const {
    return outcome.device_bytes <= request_.budget.device &&
           outcome.host_bytes <= request_.budget.host;
  }

  // Tells searches of other budgets of a plan. The result does not depend on when they hear of it:
  // what they then leave out would be slower.
  void publish(const SearchedPlan& plan) {
    const Outcome& outcome = plan.placed.outcome;
    double known = fastest_seconds_;
    while (is_within_budget(outcome) && outcome.seconds < known &&
           !fastest_seconds_.compare_exchange_weak(known, outcome.seconds)) {
    }
  }

  void accept(SearchedPlan plan) {
    const Outcome& outcome = plan.placed.outcome;
    if (is_within_budget(outcome) && outcome.seconds < best_.placed.outcome.seconds) {
      best_ = std::move(plan);
    }
  }

  const Request& request_;
  const PlanningProblem& problem_;
  const SearchedPlan& smallest_;
  BudgetBounds bounds_;
  std::vector<std::size_t> series_;
  std::size_t count_;                              // of the series, up to the request's budget
  std::size_t near_;                               // of the series
  std::vector<std::optional<Solution>> below_;     // by near budget: found from the one above
  std::vector<std::optional<SearchedPlan>> full_;  // by budget: searched by itself
  std::atomic<double> fastest_seconds_;  // of a plan within the request's budget, of any form
  SearchedPlan best_;
};

// Returns notes for --lms_debug: each tensor that leaves, each node that runs again.
std::vector<Note> moves_of(const Graph& graph, const Schedule& schedule) {
  std::vector<Note> notes;
  const std::vector<bool> again = runs_again(graph, schedule);
  for (std::size_t s = 0; s < again.size(); ++s) {
    const Action& action = schedule.steps[s].action;
    const auto* offload = std::get_if<Offload>(&action);
    if (offload != nullptr && may_move(graph, offload->tensor)) {
      const TensorInfo& info = graph.info(offload->tensor);
      notes.push_back({1, "Tensor " + info.name + " leaves the device (" +
                              mib_text(info.desc.bytes()) + " MiB)"});
    } else if (again[s]) {
      notes.push_back({1, "Node " + to_string(graph, action) + " runs again"});
    }
  }
  return notes;
}

}  // namespace

std::size_t min_feasible_bytes(const Request& request) {
  return minimize_memory(request, planning_problem(request)).placed.outcome.device_bytes;
}

Plan planned(const Request& request) {
  const PlanningProblem problem = planning_problem(request);
  const SearchedPlan smallest = minimize_memory(request, problem);
  PlacedPlan placed = SeriesSearch(request, problem, smallest).fastest();
  Plan plan{.schedule = std::move(placed.schedule),
            .notes = {},
            .enough = placed.enough,
            .floor = smallest.placed.outcome.device_bytes};
  plan.notes = moves_of(request.graph, plan.schedule);
  return plan;
}

}  // namespace cnn::lms
