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
        start = repaired(std::move(start));
      }
      accept_if_better(std::move(start));
    } else {
      sweep();
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

  double seconds_to_make(std::uint32_t root) const {
    double seconds = 0;
    for (const std::uint32_t maker : problem_.roots[root].makers) {
      seconds += problem_.nodes[maker].seconds;
    }
    return seconds;
  }

  // Greedy starts: drops the roots with the lowest recompute time per byte, for 33 numbers of them,
  // and swaps out the oldest of the rest until the plan fits.
  void sweep() {
    std::vector<std::uint32_t> order;
    if (options_.drops) {
      std::ranges::copy_if(changes_.movable(), std::back_inserter(order),
                           [&](std::uint32_t r) { return problem_.roots[r].may_drop; });
    }
    std::ranges::stable_sort(order, {}, [&](std::uint32_t r) {
      return seconds_to_make(r) / static_cast<double>(problem_.roots[r].bytes);
    });
    constexpr std::size_t prefixes = 32;
    for (std::size_t p = 0; p <= prefixes; ++p) {
      TensorDecisions decisions(problem_.roots.size(), TensorDecision::keep);
      const std::size_t dropped = order.size() * p / prefixes;
      for (std::size_t i = 0; i < dropped; ++i) {
        changes_.set(decisions, order[i], TensorDecision::drop);
      }
      accept_best_of(decisions);
      for (TensorDecision& decision : decisions) {
        decision = decision == TensorDecision::drop ? TensorDecision::drop_often : decision;
      }
      accept_best_of(decisions);
      if (changes_.within_pass()) {
        for (std::size_t i = 0; i < dropped; ++i) {
          changes_.set(decisions, order[i], TensorDecision::drop_always);
        }
        accept_best_of(decisions);
      }
    }
  }

  void accept_best_of(const TensorDecisions& decisions) {
    if (!options_.swaps) {
      accept_if_better(evaluate(decisions));
      return;
    }
    for (const TensorDecision kind : {TensorDecision::swap, TensorDecision::swap_often}) {
      accept_if_better(with_swaps(decisions, kind));
    }
    if (changes_.within_pass()) {
      accept_if_better(with_swaps(decisions, TensorDecision::swap_always));
    }
  }

  // Swaps out the oldest of the kept roots: as few as suffice, as many as the host holds.
  Solution with_swaps(const TensorDecisions& decisions, TensorDecision kind) {
    std::vector<std::uint32_t> kept;
    std::size_t bytes = 0;
    for (const std::uint32_t r : changes_.movable()) {
      const std::size_t more = problem_.roots[r].bytes;
      if (decisions[r] == TensorDecision::keep && problem_.roots[r].may_swap &&
          more <= options_.host_bytes - bytes) {
        bytes += more;
        kept.push_back(r);
      }
    }
    const auto swapped = [&](std::size_t count) {
      TensorDecisions more = decisions;
      for (std::size_t i = 0; i < count; ++i) {
        changes_.set(more, kept[i], kind);
      }
      return evaluate(std::move(more));
    };
    Solution least = swapped(kept.size());
    std::size_t low = 0, high = kept.size();  // high fits if any value does
    while (low < high && least.evaluation.fits) {
      const std::size_t middle = (low + high) / 2;
      Solution found = swapped(middle);
      if (found.evaluation.fits) {
        high = middle;
        if (is_better(found.evaluation, least.evaluation)) {
          least = std::move(found);
        }
      } else {
        low = middle + 1;
      }
    }
    return least;
  }

  // A greedy move that frees bytes in the steps above the budget; its price is in seconds per byte.
  struct Move {
    double price = 0;
    std::uint32_t root = 0;
    TensorDecision decision = TensorDecision::keep;
    bool operator<(const Move& other) const { return price > other.price; }
  };

  // Returns the moves that change these decisions.
  std::vector<Move> moves_from(TensorDecisions decisions) const {
    std::vector<Move> moves;
    for (const std::uint32_t root : changes_.movable()) {
      const TensorDecision before = decisions[root];
      for (const TensorDecision decision :
           {TensorDecision::drop, TensorDecision::drop_often, TensorDecision::swap,
            TensorDecision::swap_often, TensorDecision::drop_always, TensorDecision::swap_always}) {
        if (leaves_always(decision) && !changes_.within_pass()) {
          continue;
        }
        changes_.set(decisions, root, decision);
        if (decisions[root] != before) {
          moves.push_back({.root = root, .decision = decision});
        }
      }
      decisions[root] = before;
    }
    return moves;
  }

  // Returns, by root, the bytes that it holds during steps of the latest evaluation that are above
  // the budget, summed over these steps. It counts no step that begins or ends an interval of the
  // root, since that uses it: the move of a root without such bytes frees nothing there.
  std::vector<double> bytes_above_budget() const {
    const std::vector<std::size_t>& bytes = evaluator_.bytes();
    std::vector<std::uint32_t> above{0};  // the number of such steps before each step
    for (const std::size_t live : bytes) {
      above.push_back(above.back() + (live > options_.device_bytes ? 1 : 0));
    }
    std::vector<double> held(problem_.roots.size());
    for (const LiveInterval& one : expanded_->intervals) {
      if (one.first + 1 < one.last) {
        held[one.root] += static_cast<double>(problem_.roots[one.root].bytes) *
                          (above[one.last] - above[one.first + 1]);
      }
    }
    return held;
  }

  // Returns the moves to try first: all of them, or where their prices would take all of the work,
  // in half of it those of the roots that hold most bytes above the budget.
  std::vector<Move> useful_moves(const Solution& start) const {
    std::vector<Move> moves = moves_from(start.decisions);
    const std::size_t left = options_.work - std::min(options_.work, work_);
    const std::size_t most = left / std::max<std::size_t>(1, expanded_->steps.size());
    if (moves.size() >= most) {
      const std::vector<double> held = bytes_above_budget();
      std::erase_if(moves, [&](const Move& move) { return held[move.root] <= 0; });
      std::ranges::stable_sort(moves, std::greater<>(),
                               [&](const Move& move) { return held[move.root]; });
      moves.resize(std::min(moves.size(), most / 2));
    }
    return moves;
  }

  // Makes moves, the cheapest first, until the plan fits or none helps. Prices change with earlier
  // moves: each is recomputed before its move is made.
  Solution repaired(Solution start) {
    Solution current = weighed(std::move(start.decisions));
    std::priority_queue<Move> moves;
    const std::vector<Move> useful = useful_moves(current);
    expander_.rebase(current.decisions);
    for (const Move& move : useful) {
      push_move(moves, price_of(move, current).first);
    }
    while (!current.evaluation.fits && !moves.empty() && work_ < options_.work) {
      const Move move = moves.top();
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

  static void push_move(std::priority_queue<Move>& moves, const Move& move) {
    if (move.price < never) {
      moves.push(move);
    }
  }

  // Returns the move with its price, and the resulting solution.
  std::pair<Move, Solution> price_of(Move move, const Solution& current) {
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
