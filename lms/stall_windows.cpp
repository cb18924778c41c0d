#include "lms/stall_windows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/access.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::uint32_t nothing = ~std::uint32_t{0};
constexpr std::uint32_t longest_window = 64, longest_chain = 12;  // steps

// The tensors that must come back within one window: each byte is copied or recomputed, and both
// lanes work at the same time. A fractional knapsack, as in the bound of the whole step.
class Arrivals {
 public:
  Arrivals(double room, double in) : room_(room), in_(in) {}

  // Adds a tensor that cannot be recomputed within the window. moved: its bytes without padding,
  // which no copy moves.
  void add(double bytes, double moved) { (bytes > room_ ? copied_ : loose_) += moved; }
  // Adds a tensor that can also be recomputed, in `again` seconds.
  void add(double bytes, double moved, double again) {
    const Item item{.rate = again / moved, .bytes = moved};
    items_.insert(std::ranges::upper_bound(items_, item.rate, {}, &Item::rate), item);
    (bytes > room_ ? bound_ : loose_) += moved;
  }
  // Adds the seconds of copies and nodes that must follow one another.
  void add_chain(double seconds) { chain_ = std::max(chain_, seconds); }

  // Returns the fewest seconds between both steps, between which others take `compute`.
  double seconds(double compute) const {
    double left = bound_ + std::max(0.0, loose_ - room_);  // bytes to be copied or recomputed
    double copies = (copied_ + left) * in_;
    for (const Item& item : items_) {
      if (left <= 0 || copies <= compute) {
        break;
      }
      const double balance = (copies - compute) / (item.rate + in_);
      const double bytes = std::min({item.bytes, left, balance});
      copies -= bytes * in_;
      compute += bytes * item.rate;
      left -= bytes;
    }
    return std::max({compute, copies, chain_});
  }

 private:
  struct Item {
    double rate = 0, bytes = 0;  // seconds of recomputation per byte
  };
  double room_, in_;
  std::vector<Item> items_;
  double copied_ = 0, bound_ = 0, loose_ = 0, chain_ = 0;
};

class Windows {
 public:
  Windows(const Request& request, const Pressure& pressure, bool repeats)
      : request_(request),
        graph_(request.graph),
        pressure_(pressure),
        repeats_(repeats),
        device_(static_cast<double>(aligned(request.budget.device))),
        in_(request.costs.in_bytes_per_second > 0 ? 1 / request.costs.in_bytes_per_second : 0),
        movable_(graph_.tensors().size(), nothing),
        spans_(graph_.tensors().size()),
        makers_(pressure.movables.size()),
        away_(pressure.movables.size(), nothing),
        cost_(pressure.movables.size()) {
    for (std::uint32_t m = 0; m < pressure.movables.size(); ++m) {
      movable_[index_of(pressure.movables[m].tensor)] = m;
    }
    add_steps();
    add_held();
    add_nodes();
  }

  // The heaviest set of windows that do not overlap.
  double seconds() {
    if (request_.budget.swap_bytes() == 0 || in_ == 0) {
      return 0;
    }
    std::vector<double> best(nodes_.size() + 1);  // by step: of windows that end before it
    for (std::uint32_t q = 0; q < nodes_.size(); ++q) {
      best[q + 1] = std::max(best[q + 1], best[q]);
      add_windows(q, best);
    }
    return best.back();
  }

 private:
  struct Span {  // first and last compute step that touch a root
    std::uint32_t first = nothing, last = 0;
    bool elsewhere = false;  // another lane touches it too
  };
  struct Operand {
    double bytes = 0;
    std::uint32_t last = 0, movable = nothing;
  };
  struct Repeat {  // of a step, if it runs again
    std::vector<Operand> operands;
    std::vector<std::uint32_t> reads;  // movables
    double others = 0;                 // workspace, less bytes of inputs that outputs take over
  };

  std::size_t root(TensorId tensor) const { return index_of(graph_.root_of(tensor)); }
  double bytes(std::size_t root) const {
    return static_cast<double>(aligned(graph_.tensors()[root].desc.bytes()));
  }

  void add_steps() {
    for (const Step& step : request_.schedule.steps) {
      const auto* compute = std::get_if<Compute>(&step.action);
      if (compute == nullptr) {
        continue;
      }
      const auto at = static_cast<std::uint32_t>(nodes_.size());
      for_each_access(graph_, step.action, [&](const Access& access) {
        Span& span = spans_[root(access.tensor)];
        span.elsewhere = span.elsewhere || step.lane != Lane::compute;
        span.first = std::min(span.first, at);
        span.last = std::max(span.last, at);
      });
      if (step.lane == Lane::compute) {
        nodes_.push_back(compute->node);
      }
    }
  }

  // Bytes that no plan can move, between each step and the next one.
  void add_held() {
    std::vector<double> change(nodes_.size() + 2);
    for (std::size_t t = 0; t < spans_.size(); ++t) {
      const Span& span = spans_[t];
      if (span.first != nothing && !span.elsewhere && movable_[t] == nothing &&
          !is_persistent(graph_.tensors()[t].role)) {
        change[span.first] += bytes(t);
        change[span.last] -= bytes(t);
      }
    }
    double live = 0;
    for (std::size_t s = 0; s < nodes_.size(); ++s) {
      live += change[s];
      held_.push_back(live);
    }
  }

  // Returns the bytes of the outputs that may take over those of an input.
  double reused_in_place(const Node& node) const {
    double taken = 0;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (may_reuse_in_place(graph_, node, i, o)) {
          taken += bytes(root(node.outputs[o]));
          break;
        }
      }
    }
    return taken;
  }

  void add_nodes() {
    for (std::uint32_t s = 0; s < nodes_.size(); ++s) {
      const Node& node = graph_.nodes()[index_of(nodes_[s])];
      Repeat& repeat = repeats_of_.emplace_back();
      repeat.others = static_cast<double>(aligned(request_.specs[index_of(nodes_[s])].workspace));
      std::vector<std::size_t> roots;
      for_each_access(graph_, Compute{nodes_[s]}, [&](const Access& access) {
        const std::size_t r = root(access.tensor);
        if (is_persistent(graph_.tensors()[r].role)) {
          return;
        }
        const std::uint32_t m = movable_[r];
        if (std::ranges::find(roots, r) == roots.end()) {
          roots.push_back(r);
          repeat.operands.push_back({bytes(r), spans_[r].last, m});
        }
        if (m == nothing) {
          return;
        }
        if (access.kind != Access::Kind::define) {
          repeat.reads.push_back(m);
        } else if (makers_[m].empty() || makers_[m].back() != s) {
          makers_[m].push_back(s);
        }
      });
      repeat.others -= reused_in_place(node);
    }
  }

  // Returns whether the movable can be recomputed in the window from q on while others hold so many
  // bytes. A necessary condition.
  bool may_repeat(std::uint32_t m, std::uint32_t q, double held) const {
    const Movable& one = pressure_.movables[m];
    return repeats_ && std::min(one.again, one.again_late) != Movable::never &&
           std::ranges::all_of(makers_[m], [&](std::uint32_t maker) {
             double all = held + repeats_of_[maker].others;
             for (const Operand& operand : repeats_of_[maker].operands) {
               all += operand.movable != nothing || operand.last < q ? operand.bytes : 0;
             }
             return all <= device_;
           });
  }

  double seconds_again(std::uint32_t m) const {
    return std::min(pressure_.movables[m].again, pressure_.movables[m].again_late);
  }
  double copied_bytes(const Movable& one) const { return one.bytes - one.padding; }

  // Returns the seconds of recomputing a movable after the dearest of its sources.
  double seconds_of_chain(std::uint32_t m) const {
    double sources = 0;
    for (const std::uint32_t maker : makers_[m]) {
      for (const std::uint32_t source : repeats_of_[maker].reads) {
        sources = std::max(sources, source < m ? cost_[source] : 0);
      }
    }
    return sources + seconds_again(m);
  }

  // Finds for each movable that cannot be there during step q the fewest seconds until it can be:
  // of its copy, or of recomputing it and what it is made of.
  void find_chains(std::uint32_t q, double room) {
    double held = infinity;
    for (std::uint32_t s = q; s < nodes_.size() && s < q + longest_chain; ++s) {
      held = std::min(held, held_[s]);
    }
    for (std::uint32_t m = 0; m < pressure_.movables.size(); ++m) {
      const Movable& one = pressure_.movables[m];
      cost_[m] = 0;
      if (away_[m] != q || one.bytes <= room || one.on_host || one.in_parts) {
        continue;
      }
      const double again = may_repeat(m, q, held) ? seconds_of_chain(m) : infinity;
      const double copy = one.may_copy ? copied_bytes(one) * in_ : infinity;
      const double least = std::min(copy, again);
      cost_[m] = least == infinity ? 0 : least;
    }
  }

  // Adds the windows from step q to later ones.
  void add_windows(std::uint32_t q, std::vector<double>& best) {
    const PressureStep& first = pressure_.steps[q];
    double room = device_ - first.live;
    double largest = 0, movable = 0;
    for (const std::uint32_t m : first.away) {
      away_[m] = q;
      movable += pressure_.movables[m].bytes;
      largest = std::max(largest, pressure_.movables[m].bytes);
    }
    room = std::max(0.0, room + movable);
    if (movable <= room) {
      return;
    }
    find_chains(q, room);
    Arrivals arrivals(room, in_);
    double held = infinity;
    for (std::uint32_t p = q + 1; p < nodes_.size() && p <= q + longest_window; ++p) {
      held = std::min(held, held_[p - 1]);
      for (const std::uint32_t m : repeats_of_[p].reads) {
        const Movable& one = pressure_.movables[m];
        if (away_[m] != q || one.on_host || one.in_parts) {
          continue;
        }
        away_[m] = nothing;  // it comes back once
        if (may_repeat(m, q, held)) {
          arrivals.add(one.bytes, copied_bytes(one), seconds_again(m));
        } else if (one.may_copy) {
          arrivals.add(one.bytes, copied_bytes(one));
        }
        if (p < q + longest_chain) {
          arrivals.add_chain(cost_[m]);
        }
      }
      const double compute = pressure_.steps[p].before - first.before - first.seconds;
      const double more = arrivals.seconds(compute) - compute;
      best[p] = std::max(best[p], best[q] + std::max(0.0, more));
    }
  }

  const Request& request_;
  const Graph& graph_;
  const Pressure& pressure_;
  bool repeats_;
  double device_, in_;                              // bytes, seconds per byte
  std::vector<NodeId> nodes_;                       // by step
  std::vector<std::uint32_t> movable_;              // by TensorId of roots
  std::vector<Span> spans_;                         // by TensorId of roots
  std::vector<double> held_;                        // by step: bytes between it and the next one
  std::vector<Repeat> repeats_of_;                  // by step
  std::vector<std::vector<std::uint32_t>> makers_;  // by movable: steps
  std::vector<std::uint32_t> away_;                 // by movable: the step that it is not there at
  std::vector<double> cost_;                        // by movable: seconds
};

}  // namespace

double seconds_in_windows(const Request& request, const Pressure& pressure, bool repeats) {
  return Windows(request, pressure, repeats).seconds();
}

}  // namespace cnn::lms
