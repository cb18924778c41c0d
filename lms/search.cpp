#include "lms/search.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "runtime/linear_congruence.h"

namespace cnn::lms {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// Fitting comes first; then, of those that do not fit, the one that is nearer to it.
bool is_better(const Evaluation& a, const Evaluation& b, bool thriftiest) {
  if (thriftiest) {
    return a.peak != b.peak ? a.peak < b.peak : a.excess < b.excess;
  }
  if (a.fits != b.fits) {
    return a.fits;
  }
  return a.fits ? a.seconds < b.seconds : a.excess < b.excess;
}

class Searcher {
 public:
  Searcher(const Outline& outline, const SearchOptions& options)
      : outline_(outline),
        options_(options),
        unroller_(outline),
        evaluator_(outline, options.device_bytes, options.sync) {
    for (std::uint32_t r = 0; r < outline.roots.size(); ++r) {
      const Root& root = outline.roots[r];
      if (root.may_leave && (options.swaps || (options.drops && root.may_drop))) {
        movable_.push_back(r);
      }
    }
    // Roots come in the order of the graph, which is that of the forward pass.
    best_ = attempt(Fates(outline.roots.size(), Fate::keep));
    work_ = 0;
  }

  Found run() {
    if ((best_.evaluation.fits && !options_.thriftiest) || movable_.empty()) {
      return best_;
    }
    if (options_.start != nullptr) {
      Found start = attempt(*options_.start);
      const bool moves_more = !start.evaluation.fits && !options_.thriftiest;
      offer(moves_more ? repaired(std::move(start.fates)) : std::move(start));
    } else {
      sweep();
    }
    improve();
    if (options_.spares) {
      spare();
    }
    return best_;
  }

 private:
  // Seconds beyond which it is of no use.
  Found attempt(Fates fates, double seconds = never) {
    const Unrolled& unrolled = unroller_.unroll(fates);
    work_ += unrolled.steps.size();
    Evaluation evaluation = evaluator_.estimate(unrolled, seconds);
    if (const std::size_t leaving = leaving_bytes(fates); leaving > options_.host_bytes) {
      evaluation.fits = false;
      evaluation.peak += leaving - options_.host_bytes;
      evaluation.excess += static_cast<double>(leaving - options_.host_bytes);
    }
    return {std::move(fates), evaluation};
  }

  std::size_t leaving_bytes(const Fates& fates) const {
    std::size_t bytes = 0;
    for (const std::uint32_t r : movable_) {
      bytes += fates[r] == Fate::swap ? outline_.roots[r].bytes : 0;
    }
    return bytes;
  }

  bool is_better(const Evaluation& a, const Evaluation& b) const {
    return lms::is_better(a, b, options_.thriftiest);
  }

  void offer(Found found) {
    if (is_better(found.evaluation, best_.evaluation)) {
      best_ = std::move(found);
    }
  }

  double seconds_to_make(std::uint32_t root) const {
    double seconds = 0;
    for (const std::uint32_t maker : outline_.roots[root].makers) {
      seconds += outline_.nodes[maker].seconds;
    }
    return seconds;
  }

  // Cheapest to make again for their bytes first, more and more of them; of the others the oldest
  // leave, as few as suffice.
  void sweep() {
    std::vector<std::uint32_t> order;
    if (options_.drops) {
      std::ranges::copy_if(movable_, std::back_inserter(order),
                           [&](std::uint32_t r) { return outline_.roots[r].may_drop; });
    }
    std::ranges::stable_sort(order, {}, [&](std::uint32_t r) {
      return seconds_to_make(r) / static_cast<double>(outline_.roots[r].bytes);
    });
    constexpr std::size_t prefixes = 32;
    for (std::size_t p = 0; p <= prefixes; ++p) {
      Fates fates(outline_.roots.size(), Fate::keep);
      const std::size_t dropped = order.size() * p / prefixes;
      for (std::size_t i = 0; i < dropped; ++i) {
        fates[order[i]] = Fate::drop;
      }
      options_.swaps ? offer(with_swaps(fates)) : offer(attempt(fates));
      for (Fate& fate : fates) {
        fate = fate == Fate::drop ? Fate::drop_often : fate;
      }
      options_.swaps ? offer(with_swaps(fates)) : offer(attempt(fates));
    }
  }

  // The oldest that are kept leave, as few as suffice, as many as the host takes.
  Found with_swaps(const Fates& fates) {
    std::vector<std::uint32_t> kept;
    std::size_t bytes = 0;
    for (const std::uint32_t r : movable_) {
      bytes += fates[r] == Fate::keep ? outline_.roots[r].bytes : 0;
      if (fates[r] == Fate::keep && bytes <= options_.host_bytes) {
        kept.push_back(r);
      }
    }
    const auto swapped = [&](std::size_t count) {
      Fates more = fates;
      for (std::size_t i = 0; i < count; ++i) {
        more[kept[i]] = Fate::swap;
      }
      return attempt(std::move(more));
    };
    Found least = swapped(kept.size());
    std::size_t low = 0, high = kept.size();  // high fits, if anything does
    while (low < high && least.evaluation.fits) {
      const std::size_t middle = (low + high) / 2;
      Found found = swapped(middle);
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

  // A move that takes bytes off the steps that hold too many, by the seconds for such a byte.
  struct Move {
    double price = 0;
    std::uint32_t root = 0;
    Fate fate = Fate::keep;
    bool operator<(const Move& other) const { return price > other.price; }
  };

  // More and more moves, the cheapest first, until it fits or none helps. Prices change with the
  // moves made: each is asked for again before its move is.
  Found repaired(Fates fates) {
    Found current = weighed(std::move(fates));
    std::priority_queue<Move> moves;
    for (const std::uint32_t root : movable_) {
      for (const Fate fate : {Fate::drop, Fate::drop_often, Fate::swap}) {
        push_move(moves, price_of({.root = root, .fate = fate}, current).first);
      }
    }
    while (!current.evaluation.fits && !moves.empty() && work_ < options_.work) {
      const Move move = moves.top();
      moves.pop();
      auto [again, next] = price_of(move, current);
      if (!moves.empty() && again.price > moves.top().price) {
        push_move(moves, again);
      } else if (again.price < never) {
        current = std::move(next);
      }
    }
    return attempt(std::move(current.fates));
  }

  static void push_move(std::priority_queue<Move>& moves, const Move& move) {
    if (move.price < never) {
      moves.push(move);
    }
  }

  // And what it leads to.
  std::pair<Move, Found> price_of(Move move, const Found& current) {
    move.price = never;
    Fates fates = current.fates;
    set(fates, move.root, move.fate);
    if (fates == current.fates) {
      return {move, {}};
    }
    Found next = weighed(std::move(fates));
    const double gone = current.evaluation.excess - next.evaluation.excess;
    if (gone > 0) {
      move.price = (next.evaluation.seconds - current.evaluation.seconds) / gone;
    }
    return {move, std::move(next)};
  }

  // Without its waits, which depend on it as a whole: copies count by half of their time, as some
  // hide behind compute.
  Found weighed(Fates fates) {
    Found found = attempt(std::move(fates), 0);
    const double rate = outline_.out_bytes_per_second;
    if (rate > 0) {
      found.evaluation.seconds += static_cast<double>(leaving_bytes(found.fates)) / rate / 2;
    }
    return found;
  }

  // Small changes of neighbours. A slightly slower plan is accepted as well, ever more rarely: few
  // ways to a better plan go down all the time. Begins again from the best, with smaller losses.
  void improve() {
    double heat = options_.heat;
    const std::size_t begun = work_, whole = options_.work - std::min(begun, options_.work);
    constexpr std::size_t rounds = 3;
    for (std::size_t round = 1; round <= rounds; ++round, heat /= 2) {
      cool_down(heat, begun + whole * round / rounds);
    }
  }

  void cool_down(double heat, std::size_t until) {
    Found current = best_;
    const auto begun = static_cast<double>(work_);
    while (work_ < until && !is_good_enough()) {
      const double left =
          (static_cast<double>(until - work_)) / (static_cast<double>(until) - begun);
      const bool by_time = current.evaluation.fits && !options_.thriftiest;
      const double limit = by_time ? current.evaluation.seconds * (1 + heat * left * left) : never;
      Found next = attempt(by_time ? exchanged(current.fates) : changed(current.fates), limit);
      if (by_time ? next.evaluation.fits && next.evaluation.seconds <= limit
                  : !is_better(current.evaluation, next.evaluation)) {
        current = std::move(next);
        offer(current);
      }
    }
  }

  // Keeps the tensors that need not move, the largest first.
  void spare() {
    if (!best_.evaluation.fits || options_.thriftiest) {
      return;
    }
    std::vector<std::uint32_t> moved;
    std::ranges::copy_if(movable_, std::back_inserter(moved),
                         [&](std::uint32_t r) { return best_.fates[r] != Fate::keep; });
    std::ranges::stable_sort(moved, std::greater<>(),
                             [&](std::uint32_t r) { return outline_.roots[r].bytes; });
    for (const std::uint32_t r : moved) {
      Fates fates = best_.fates;
      fates[r] = Fate::keep;
      Found found = attempt(std::move(fates), best_.evaluation.seconds);
      if (!is_better(best_.evaluation, found.evaluation)) {
        best_ = std::move(found);
      }
    }
  }

  bool is_good_enough() const {
    return !options_.thriftiest && best_.evaluation.fits &&
           best_.evaluation.seconds <= options_.good_enough;
  }

  // Changes a plan that fits: mostly one moves in place of another, as nearly all else is slower or
  // does not fit.
  Fates exchanged(Fates fates) {
    constexpr std::size_t of = 20, others = 2;
    const std::size_t kind = random_.next() % of;
    const std::uint32_t moved = any(fates, true);
    if (kind < options_.exchanges) {
      const Fate fate = fates[any(fates, true)];
      set(fates, any(fates, false), fate);
      fates[moved] = Fate::keep;
    } else if (kind < options_.exchanges + others) {
      set(fates, moved, random_.next() % 2 == 0 ? Fate::keep : any_fate());
    } else {
      return changed(std::move(fates));
    }
    return fates;
  }

  // One that moves or is kept; if there is none, any.
  std::uint32_t any(const Fates& fates, bool moves) {
    const auto matches = [&](std::uint32_t r) { return (fates[r] != Fate::keep) == moves; };
    const auto count = static_cast<std::size_t>(std::ranges::count_if(movable_, matches));
    std::size_t left = random_.next() % (count > 0 ? count : movable_.size());
    for (const std::uint32_t r : movable_) {
      if ((count == 0 || matches(r)) && left-- == 0) {
        return r;
      }
    }
    return movable_.front();
  }

  Fates changed(Fates fates) {
    constexpr std::array<std::size_t, 10> lengths{1, 1, 1, 1, 2, 2, 3, 4, 6, 9};
    const std::size_t at = random_.next() % movable_.size();
    const std::size_t length = lengths[random_.next() % lengths.size()];
    const std::size_t stride = 1 + (length > 1 ? random_.next() % 2 : 0);
    const Fate fate = any_fate();
    for (std::size_t i = 0; i < length && at + i * stride < movable_.size(); ++i) {
      set(fates, movable_[at + i * stride], fate);
    }
    if (random_.next() % 3 == 0) {  // and another the other way
      set(fates, movable_[random_.next() % movable_.size()], any_fate());
    }
    return fates;
  }

  Fate any_fate() {
    constexpr std::array<Fate, 4> all{Fate::keep, Fate::drop, Fate::drop_often, Fate::swap};
    return all[random_.next() % all.size()];
  }

  void set(Fates& fates, std::uint32_t root, Fate fate) const {
    const bool drops = fate == Fate::drop || fate == Fate::drop_often;
    if ((drops && (!options_.drops || !outline_.roots[root].may_drop)) ||
        (fate == Fate::swap && !options_.swaps)) {
      fate = Fate::keep;
    }
    fates[root] = fate;
  }

  const Outline& outline_;
  SearchOptions options_;
  Unroller unroller_;
  Evaluator evaluator_;
  std::vector<std::uint32_t> movable_;  // roots
  Found best_;
  std::size_t work_ = 0;
  LinearCongruence random_;
};

}  // namespace

Found search(const Outline& outline, const SearchOptions& options) {
  return Searcher(outline, options).run();
}

}  // namespace cnn::lms
