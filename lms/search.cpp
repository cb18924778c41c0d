#include "lms/search.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "lms/decision_changes.h"
#include "lms/repair_moves.h"
#include "lms/start_plans.h"
#include "runtime/linear_congruence.h"

namespace cnn::lms {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// Plans that fit are better; of two that do not fit, the one closer to fitting is better.
bool is_better(const Evaluation& a, const Evaluation& b, bool minimize_memory) {
  if (minimize_memory) {
    return a.peak != b.peak ? a.peak < b.peak : a.excess < b.excess;
  }
  if (a.fits != b.fits) {
    return a.fits;
  }
  return a.fits ? a.seconds < b.seconds : a.excess < b.excess;
}

class Searcher {
 public:
  Searcher(const PlanningProblem& problem, const SearchOptions& options)
      : problem_(problem),
        options_(options),
        expander_(problem),
        evaluator_(problem, options.device_bytes, options.sync),
        changes_(problem,
                 {.swaps = options.swaps, .drops = options.drops, .fixed = options.fixed}) {
    // Roots come in the order of the graph, which is that of the forward pass.
    best_ = evaluate(TensorDecisions(problem.roots.size(), TensorDecision::keep));
    work_ = 0;
  }

  Solution run() {
    if ((best_.evaluation.fits && !options_.minimize_memory) || changes_.movable().empty()) {
      return best_;
    }
    if (options_.start != nullptr) {
      Solution start = evaluate(*options_.start);
      if (!start.evaluation.fits && !options_.minimize_memory) {
        start = repaired(std::move(start), options_.work);
      }
      accept_if_better(std::move(start));
    } else {
      try_simple_plans();
    }
    anneal();
    recompute_swapped();
    if (options_.prune_moves) {
      prune_moves();
    }
    return best_;
  }

 private:
  void expand(const TensorDecisions& decisions) {
    if (options_.stopped != nullptr && options_.stopped()) {
      throw PlanningStopped();
    }
    if (options_.rival.wins()) {
      throw SearchOvertaken();
    }
    expanded_ = &expander_.expand(decisions);
    work_ += expanded_->steps.size();
  }

  // Evaluates decisions; a step whose nodes alone take more than `seconds` is useless, and said not
  // to fit.
  Solution evaluate(TensorDecisions decisions, double seconds = never) {
    expand(decisions);
    if (expanded_->seconds > seconds) {
      return {std::move(decisions), {.seconds = expanded_->seconds}};
    }
    return estimated(std::move(decisions), seconds);
  }

  // Estimates the schedule of these decisions, the latest expanded one.
  Solution estimated(TensorDecisions decisions, double seconds) {
    Evaluation evaluation = evaluator_.estimate(*expanded_, seconds);
    if (const std::size_t leaving = leaving_bytes(decisions); leaving > options_.host_bytes) {
      evaluation.fits = false;
      evaluation.peak += 2 * (leaving - options_.host_bytes);  // more than such a swap saves
      evaluation.excess += static_cast<double>(leaving - options_.host_bytes);
    }
    return {std::move(decisions), evaluation};
  }

  std::size_t leaving_bytes(const TensorDecisions& decisions) const {
    std::size_t bytes = 0;
    for (const std::uint32_t r : changes_.movable()) {
      bytes += is_swapped(decisions[r]) ? problem_.roots[r].bytes : 0;
    }
    return bytes;
  }

  bool is_better(const Evaluation& a, const Evaluation& b) const {
    return lms::is_better(a, b, options_.minimize_memory);
  }

  // The search for the smallest peak may pass through plans that the host cannot hold, but no
  // saving on the device makes up for that in its result.
  void accept_if_better(Solution found) {
    const bool is_held =
        !options_.minimize_memory || leaving_bytes(found.decisions) <= options_.host_bytes;
    if (is_held && is_better(found.evaluation, best_.evaluation)) {
      best_ = std::move(found);
    }
  }

  // Tries simple plans, in half of the work.
  void try_simple_plans() {
    const StartPlans plans(problem_, changes_);
    accept_if_better(with_swaps(plans.plan({}, 0)));
    for (const TensorDecision how :
         {TensorDecision::drop_often, TensorDecision::drop, TensorDecision::drop_always}) {
      if (options_.drops && (!leaves_always(how) || changes_.within_pass())) {
        options_.minimize_memory ? try_all_shares(plans, how) : try_families(plans, how);
      }
    }
    for (const TensorDecision kind : {TensorDecision::swap_often, TensorDecision::swap_always}) {
      TensorDecisions decisions = best_.decisions;
      for (const std::uint32_t r : changes_.movable()) {
        if (is_swapped(decisions[r])) {
          changes_.set(decisions, r, kind);
        }
      }
      accept_if_better(evaluate(std::move(decisions)));
    }
  }

  // Tries all plans of all families: for the smallest peak each is evaluated once, with all swaps.
  void try_all_shares(const StartPlans& plans, TensorDecision how) {
    std::vector<std::size_t> spacings = plans.spacings();
    spacings.push_back(StartPlans::no_checkpoints);
    for (const std::size_t spacing : spacings) {
      for (std::size_t share = 0; share <= StartPlans::shares && work_ < options_.work / 2;
           ++share) {
        accept_if_better(with_swaps(plans.plan({.how = how, .spacing = spacing}, share)));
      }
    }
  }

  // Tries the families without checkpoints and with them, the latter from a medium spacing on
  // towards better ones. The best share to drop differs little from one spacing to the next.
  void try_families(const StartPlans& plans, TensorDecision how) {
    constexpr std::size_t wide = 8, medium = 4, narrow = 2;  // first steps from share to share
    const std::vector<std::size_t> spacings = plans.spacings();
    std::size_t share = StartPlans::shares / 2;
    climb(plans, {.how = how}, share, wide, spacings.empty() ? 1 : medium);
    if (spacings.empty()) {
      return;
    }
    std::size_t at = spacings.size() / 2;
    Evaluation best = climb(plans, {.how = how, .spacing = spacings[at]}, share, wide, 1);
    for (const bool up : {false, true}) {
      const std::size_t first = at;
      while (up ? at + 1 < spacings.size() : at > 0) {
        const std::size_t next = up ? at + 1 : at - 1;
        std::size_t near = share;
        const Evaluation found =
            climb(plans, {.how = how, .spacing = spacings[next]}, near, narrow, 1);
        if (!is_better(found, best)) {
          break;
        }
        best = found;
        share = near;
        at = next;
      }
      if (at != first) {
        break;
      }
    }
  }

  // Goes from one share of a family's plans to better ones, in steps from the first to the last
  // size. Returns the evaluation of the best plan.
  Evaluation climb(const StartPlans& plans, const StartPlans::Family& family, std::size_t& share,
                   std::size_t step, std::size_t last) {
    Solution best = with_swaps(plans.plan(family, share));
    // Goes one way while plans become better. Returns whether the first one did.
    const auto goes = [&](bool up) {
      const std::size_t first = share;
      while (work_ < options_.work / 2 &&
             (up ? share + step <= StartPlans::shares : share >= step)) {
        const std::size_t next = up ? share + step : share - step;
        Solution found = with_swaps(plans.plan(family, next));
        if (!is_better(found.evaluation, best.evaluation)) {
          break;
        }
        best = std::move(found);
        share = next;
      }
      return share != first;
    };
    for (; step >= last; step /= 2) {
      if (!goes(false)) {
        goes(true);
      }
    }
    const Evaluation result = best.evaluation;
    accept_if_better(std::move(best));
    return result;
  }

  // Swaps out the oldest of the kept roots: as few as suffice, as many as the host holds. Where all
  // nearly suffice, it makes other moves too.
  Solution with_swaps(TensorDecisions decisions) {
    std::vector<std::uint32_t> swapped;
    std::size_t bytes = 0;
    for (const std::uint32_t r : changes_.movable()) {
      const std::size_t more = problem_.roots[r].bytes;
      if (options_.swaps && decisions[r] == TensorDecision::keep && problem_.roots[r].may_swap &&
          more <= options_.host_bytes - bytes) {
        bytes += more;
        swapped.push_back(r);
        changes_.set(decisions, r, TensorDecision::swap);
      }
    }
    Solution best = evaluate(std::move(decisions));
    constexpr double nearly = 1.4;  // peak by budget
    if (!best.evaluation.fits && !options_.minimize_memory &&
        static_cast<double>(best.evaluation.peak) <
            nearly * static_cast<double>(options_.device_bytes)) {
      constexpr std::size_t plans = 60;
      best = repaired(std::move(best), work_ + plans * problem_.steps.size());
    }
    return best.evaluation.fits ? with_fewest_swaps(std::move(best), swapped) : best;
  }

  // Keeps as many of the swapped roots as fit, the last ones first.
  Solution with_fewest_swaps(Solution best, const std::vector<std::uint32_t>& swapped) {
    const TensorDecisions all = best.decisions;
    std::size_t low = 0, high = swapped.size();  // high fits
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      TensorDecisions fewer = all;
      for (std::size_t i = middle; i < swapped.size(); ++i) {
        if (is_swapped(fewer[swapped[i]])) {
          fewer[swapped[i]] = TensorDecision::keep;
        }
      }
      Solution found = evaluate(std::move(fewer));
      if (found.evaluation.fits) {
        high = middle;
        if (is_better(found.evaluation, best.evaluation)) {
          best = std::move(found);
        }
      } else {
        low = middle + 1;
      }
    }
    return best;
  }

  // Returns the moves to try first: all of them, or where their prices would take all of the work,
  // in half of it those of the roots that hold most bytes above the budget.
  std::vector<RepairMove> useful_moves(const Solution& start, std::size_t until) const {
    std::vector<RepairMove> moves = repair_moves(changes_, start.decisions);
    const std::size_t left = until - std::min(until, work_);
    const std::size_t most = left / std::max<std::size_t>(1, expanded_->steps.size());
    if (moves.size() >= most) {
      keep_most_useful(
          moves,
          bytes_above_budget(problem_, *expanded_, evaluator_.bytes(), options_.device_bytes),
          most / 2);
    }
    return moves;
  }

  // Makes moves, the cheapest first, until the plan fits, none helps or so much work is done.
  // Prices change with earlier moves: each is recomputed before its move is made.
  Solution repaired(Solution start, std::size_t until) {
    Solution current = weighed(std::move(start.decisions));
    std::priority_queue<RepairMove> moves;
    const std::vector<RepairMove> useful = useful_moves(current, until);
    expander_.rebase(current.decisions);
    for (const RepairMove& move : useful) {
      push_move(moves, price_of(move, current).first);
    }
    while (!current.evaluation.fits && !moves.empty() && work_ < until) {
      const RepairMove move = moves.top();
      moves.pop();
      auto [again, next] = price_of(move, current);
      if (!moves.empty() && again.price > moves.top().price) {
        push_move(moves, again);
      } else if (again.price < never) {
        current = std::move(next);
        expander_.rebase(current.decisions);
      }
    }
    return evaluate(std::move(current.decisions));
  }

  static void push_move(std::priority_queue<RepairMove>& moves, const RepairMove& move) {
    if (move.price < never) {
      moves.push(move);
    }
  }

  // Returns the move with its price, and the resulting solution.
  std::pair<RepairMove, Solution> price_of(RepairMove move, const Solution& current) {
    move.price = never;
    TensorDecisions decisions = current.decisions;
    changes_.set(decisions, move.root, move.decision);
    if (decisions == current.decisions) {
      return {move, {}};
    }
    Solution next = weighed(std::move(decisions));
    const double gone = current.evaluation.excess - next.evaluation.excess;
    if (gone > 0) {
      move.price = (next.evaluation.seconds - current.evaluation.seconds) / gone;
    }
    return {move, std::move(next)};
  }

  // Evaluates without waits, which depend on the whole plan: counts half of the copies' time, as
  // compute hides part of them.
  Solution weighed(TensorDecisions decisions) {
    expand(decisions);
    Solution found = estimated(std::move(decisions), 0);
    const std::size_t leaving = leaving_bytes(found.decisions);
    const std::size_t stored =
        problem_.disk_bytes > 0 ? leaving - std::min(leaving, problem_.host_bytes) : 0;
    for (const auto& [bytes, rate] : {std::pair(leaving, problem_.out_bytes_per_second),
                                      std::pair(stored, problem_.store_bytes_per_second)}) {
      found.evaluation.seconds += rate > 0 ? static_cast<double>(bytes) / rate / 2 : 0;
    }
    return found;
  }

  // Almost no change of a plan that fills the budget fits by itself, so that more tensors leave
  // where it is fullest: a random number of them. Rounds differ, since many leave time for few
  // changes.
  struct Round {
    std::size_t least = 0, most = 0;  // tensors that leave with each change
    std::size_t reliefs(LinearCongruence& random) const {
      return least == most ? most : least + random.next() % (most - least + 1);
    }
  };

  // Simulated annealing: a slightly slower neighbour is accepted as well, the less the lower the
  // temperature. Each round starts again from the best plan, with half of the temperature.
  void anneal() {
    double temperature = options_.temperature;
    const std::size_t begun = work_, whole = options_.work - std::min(begun, options_.work);
    constexpr std::size_t most = 8, few = 3;
    constexpr std::array rounds{Round{most, most}, Round{0, most}, Round{few, few}};
    for (std::size_t r = 0; r < rounds.size(); ++r, temperature /= 2) {
      cool(temperature, rounds.at(r), begun + whole * (r + 1) / rounds.size());
    }
  }

  void cool(double temperature, const Round& round, std::size_t until) {
    Solution current = best_;
    expander_.rebase(current.decisions);
    const auto begun = static_cast<double>(work_);
    while (work_ < until && !is_good_enough()) {
      const double left =
          (static_cast<double>(until - work_)) / (static_cast<double>(until) - begun);
      const bool by_time = current.evaluation.fits && !options_.minimize_memory;
      const double limit =
          by_time ? current.evaluation.seconds * (1 + temperature * left * left) : never;
      Solution next = evaluate(
          by_time ? changes_.exchanged(current.decisions) : changes_.changed(current.decisions),
          limit);
      const std::size_t reliefs = by_time ? round.reliefs(changes_.random()) : 0;
      for (std::size_t r = 0; r < reliefs && may_fit(next, limit); ++r) {
        next = evaluate(relieved(std::move(next.decisions)), limit);
      }
      if (by_time ? next.evaluation.fits && next.evaluation.seconds <= limit
                  : !is_better(current.evaluation, next.evaluation)) {
        current = std::move(next);
        expander_.rebase(current.decisions);
        accept_if_better(current);
      }
    }
  }

  // Returns the movable roots whose decision in the best plan is such a one, the largest first.
  std::vector<std::uint32_t> largest_first(bool (*is_such)(TensorDecision)) const {
    std::vector<std::uint32_t> roots;
    std::ranges::copy_if(changes_.movable(), std::back_inserter(roots),
                         [&](std::uint32_t r) { return is_such(best_.decisions[r]); });
    std::ranges::stable_sort(roots, std::greater<>(),
                             [&](std::uint32_t r) { return problem_.roots[r].bytes; });
    return roots;
  }

  // Recomputes swapped tensors where that is faster, the largest first. Annealing hardly finds
  // this where the sources must be recomputed alone as well: each change alone is worse.
  void recompute_swapped() {
    if (!best_.evaluation.fits || options_.minimize_memory || !options_.drops) {
      return;
    }
    const std::vector<std::uint32_t> swapped = largest_first(is_swapped);
    expander_.rebase(best_.decisions);
    for (const std::uint32_t root : swapped) {
      for (const TensorDecision how : {TensorDecision::drop_early, TensorDecision::drop_often}) {
        Solution found =
            evaluate(changes_.with_sources(best_.decisions, root, how), best_.evaluation.seconds);
        if (is_better(found.evaluation, best_.evaluation)) {
          best_ = std::move(found);
          expander_.rebase(best_.decisions);
        }
      }
    }
  }

  // Keeps tensors whose moves gain nothing, the largest first.
  void prune_moves() {
    if (!best_.evaluation.fits || options_.minimize_memory) {
      return;
    }
    const std::vector<std::uint32_t> moved =
        largest_first([](TensorDecision decision) { return decision != TensorDecision::keep; });
    expander_.rebase(best_.decisions);
    for (const std::uint32_t r : moved) {
      TensorDecisions decisions = best_.decisions;
      decisions[r] = TensorDecision::keep;
      Solution found = evaluate(std::move(decisions), best_.evaluation.seconds);
      if (!is_better(best_.evaluation, found.evaluation)) {
        best_ = std::move(found);
        expander_.rebase(best_.decisions);
      }
    }
  }

  // Returns whether a plan that does not fit may do so once more tensors leave.
  static bool may_fit(const Solution& plan, double limit) {
    return !plan.evaluation.fits && plan.evaluation.seconds <= limit;
  }

  // Takes another tensor off the device that has bytes in the fullest step of the latest evaluation
  // and that this step does not use.
  TensorDecisions relieved(TensorDecisions decisions) {
    const std::vector<std::size_t>& bytes = evaluator_.bytes();
    const auto fullest =
        static_cast<std::uint32_t>(std::ranges::max_element(bytes) - bytes.begin());
    found_.clear();
    for (const LiveInterval& one : expanded_->intervals) {
      if (one.first < fullest && fullest < one.last && changes_.is_movable(one.root)) {
        found_.push_back(one.root);
      }
    }
    if (!found_.empty()) {
      constexpr int attempts = 4;  // it may have the decision already
      const std::uint32_t root = found_[changes_.random().next() % found_.size()];
      const TensorDecision before = decisions[root];
      for (int a = 0; a < attempts && decisions[root] == before; ++a) {
        changes_.set(decisions, root, changes_.any_decision());
      }
    }
    return decisions;
  }

  bool is_good_enough() const {
    return !options_.minimize_memory && best_.evaluation.fits &&
           best_.evaluation.seconds <= options_.good_enough;
  }

  const PlanningProblem& problem_;
  SearchOptions options_;
  ScheduleExpander expander_;
  Evaluator evaluator_;
  DecisionChanges changes_;
  const ExpandedSchedule* expanded_ = nullptr;  // of the latest evaluation
  std::vector<std::uint32_t> found_;            // scratch memory of relieved()
  Solution best_;
  std::size_t work_ = 0;
};

}  // namespace

Solution search(const PlanningProblem& problem, const SearchOptions& options) {
  return Searcher(problem, options).run();
}

}  // namespace cnn::lms
