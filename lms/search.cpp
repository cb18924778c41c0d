#include "lms/search.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/linear_congruence.h"

namespace cnn::lms {
namespace {

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
      offer(attempt(*options_.start));
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
  Found attempt(Fates fates, double seconds = std::numeric_limits<double>::infinity()) {
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

  // Small changes of neighbours. What is a little slower is kept as well, less and less of it: few
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
      const double limit = by_time ? current.evaluation.seconds * (1 + heat * left * left)
                                   : std::numeric_limits<double>::infinity();
      Found next = attempt(changed(current.fates), limit);
      if (by_time ? next.evaluation.fits && next.evaluation.seconds <= limit
                  : !is_better(current.evaluation, next.evaluation)) {
        current = std::move(next);
        offer(current);
      }
    }
  }

  // What need not move stays, the largest first.
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
