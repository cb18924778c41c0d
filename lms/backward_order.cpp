#include "lms/backward_order.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/access.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

constexpr std::size_t nothing = std::numeric_limits<std::size_t>::max();

// A set of nodes of one part, one bit each.
using Set = std::uint64_t;
constexpr std::size_t most_nodes = 64;

constexpr Set bit(std::size_t node) { return Set{1} << node; }

// The indices of the nodes that touch a tensor that owns its bytes.
struct Uses {
  std::size_t first_write = nothing, last_write = 0, last_touch = 0;
};

// A tensor that nodes of a part touch.
struct Block {
  double bytes = 0;
  Set makers = 0, readers = 0;
  bool is_stashed = false;  // written in the forward pass: it may leave and return
  bool enters = false;      // exists before the part
  bool leaves = false;      // a later node of the backward pass touches it
};

// An output that may take over the bytes of an input; both are indices of blocks.
struct Reuse {
  std::size_t from = 0, to = 0;
};

// Nodes that run one after another, as indices in their part.
struct Unit {
  std::vector<std::size_t> nodes;
  Set members = 0;
  Set needed = 0;  // nodes that must have run
};

struct ActiveBytes {
  double least = 0;  // without stashed tensors between their readers
  double all = 0;
};

// Consecutive nodes of the backward pass, from `first` on, which may run in other orders.
class Part {
 public:
  Part(const Graph& graph, std::span<const KernelSpec> specs, const std::vector<Uses>& uses,
       std::size_t backward, std::size_t first, std::size_t last)
      : graph_(graph), uses_(uses), backward_(backward), first_(first), count_(last - first) {
    for (std::size_t n = 0; n < count_; ++n) {
      add_node(n);
      workspaces_.push_back(static_cast<double>(aligned(specs[first + n].workspace)));
    }
    for (const bool apart : {true, false}) {
      if (sets_.empty()) {
        units_.clear();
        add_units(apart);
        add_dependences();
        find_sets();
      }
    }
  }

  // Returns the active bytes of the fullest node in the best order.
  double least_peak() const {
    return best({.peak_only = true, .limit = std::numeric_limits<double>::infinity()}).cost;
  }

  // Returns the nodes, relative to the first one, in the best order with at most so many bytes.
  std::vector<std::size_t> ordered(double limit) const {
    std::vector<std::size_t> result;
    for (const std::size_t unit : best({.peak_only = false, .limit = limit}).units) {
      result.insert(result.end(), units_[unit].nodes.begin(), units_[unit].nodes.end());
    }
    return result;
  }

 private:
  struct Goal {
    bool peak_only = false;
    double limit = 0;
  };
  struct Found {
    double cost = 0;
    std::vector<std::size_t> units;
  };
  struct Step {
    double cost = std::numeric_limits<double>::infinity();
    std::size_t unit = 0;  // the last one
  };

  const Node& node(std::size_t n) const { return graph_.nodes()[first_ + n]; }

  // Returns the block of a tensor; nothing for variables, which have bytes of their own.
  std::optional<std::size_t> block(TensorId tensor) {
    const TensorId root = graph_.root_of(tensor);
    if (is_persistent(graph_.info(root).role)) {
      return std::nullopt;
    }
    const auto [known, is_new] = block_of_.try_emplace(index_of(root), blocks_.size());
    if (is_new) {
      const Uses& uses = uses_[index_of(root)];
      const bool is_stashed = uses.first_write == nothing || uses.first_write < backward_;
      blocks_.push_back({.bytes = static_cast<double>(aligned(graph_.info(root).desc.bytes())),
                         .is_stashed = is_stashed,
                         .enters = !is_stashed && uses.first_write < first_,
                         .leaves = uses.last_touch >= first_ + count_});
    }
    return known->second;
  }

  void add_node(std::size_t n) {
    for_each_access(graph_, Compute{NodeId{static_cast<std::uint32_t>(first_ + n)}},
                    [&](const Access& access) {
                      if (const auto b = block(access.tensor)) {
                        const bool reads = access.kind == Access::Kind::read;
                        (reads ? blocks_[*b].readers : blocks_[*b].makers) |= bit(n);
                      }
                    });
    std::vector<Reuse>& reuses = reuses_.emplace_back();
    for (std::size_t o = 0; o < node(n).outputs.size(); ++o) {
      for (std::size_t i = 0; i < node(n).inputs.size(); ++i) {
        if (may_reuse_in_place(graph_, node(n), i, o)) {
          if (const auto from = block(node(n).inputs[i])) {
            reuses.push_back({.from = *from, .to = block(node(n).outputs[o]).value()});
          }
        }
      }
    }
  }

  bool is_leaf(std::size_t n) const {
    return std::ranges::all_of(blocks_, [&](const Block& one) {
      return (one.makers & bit(n)) == 0 || (one.readers == 0 && !one.leaves);
    });
  }

  bool share_gradient(std::size_t a, std::size_t b) const {
    return std::ranges::any_of(blocks_, [&](const Block& one) {
      return !one.is_stashed && (one.readers & bit(a)) != 0 && (one.readers & bit(b)) != 0;
    });
  }

  bool has_activation_for_itself(std::size_t n) const {
    return std::ranges::none_of(blocks_, [&](const Block& one) {
      return one.is_stashed && (one.readers & bit(n)) != 0 && one.readers != bit(n);
    });
  }

  // A node whose outputs no other node of the backward pass reads, such as the gradient of weights,
  // stays before the next one, with which it shares a gradient. apart: unless others read its
  // activation too, since it may be better to follow those.
  void add_units(bool apart) {
    Unit open;
    for (std::size_t n = 0; n < count_; ++n) {
      open.nodes.push_back(n);
      open.members |= bit(n);
      if (n + 1 == count_ || !is_leaf(n) || !share_gradient(n, n + 1) ||
          (apart && !has_activation_for_itself(n))) {
        units_.push_back(std::exchange(open, {}));
      }
    }
  }

  void add_dependences() {
    for (std::size_t n = 0; n < count_; ++n) {
      const Set before = bit(n) - 1;
      const auto unit = std::ranges::find_if(
          units_, [&](const Unit& one) { return (one.members & bit(n)) != 0; });
      for (const Block& one : blocks_) {
        if ((one.makers & bit(n)) != 0) {
          unit->needed |= (one.makers | one.readers) & before;
        } else if ((one.readers & bit(n)) != 0) {
          unit->needed |= one.makers & before;
        }
      }
      unit->needed &= ~unit->members;
    }
  }

  // Finds all sets that may have run at some time, smaller ones first; none if they are too many.
  void find_sets() {
    constexpr std::size_t most = 20'000;
    std::unordered_set<Set> known{0};
    sets_.push_back(0);
    for (std::size_t at = 0; at < sets_.size(); ++at) {
      const Set done = sets_[at];
      for (const Unit& unit : units_) {
        if (may_run(unit, done) && known.insert(done | unit.members).second) {
          sets_.push_back(done | unit.members);
        }
      }
      if (sets_.size() > most) {
        sets_.clear();
        return;
      }
    }
    std::ranges::sort(sets_, [](Set a, Set b) {
      return std::pair(std::popcount(a), a) < std::pair(std::popcount(b), b);
    });
  }

  static bool may_run(const Unit& unit, Set done) {
    return (unit.members & done) == 0 && (unit.needed & ~done) == 0;
  }

  ActiveBytes active(std::size_t n, Set done) const {
    ActiveBytes result{.least = workspaces_[n], .all = workspaces_[n]};
    const Set rest = ~(done | bit(n));
    for (const Block& one : blocks_) {
      const bool touched = ((one.makers | one.readers) & bit(n)) != 0;
      const bool is_needed = one.leaves || (one.readers & rest) != 0;
      const bool waits = one.is_stashed ? (one.readers & done) != 0 && (one.readers & rest) != 0
                                        : (one.enters || (one.makers & done) != 0) && is_needed;
      result.all += touched || waits ? one.bytes : 0;
      result.least += touched || (waits && !one.is_stashed) ? one.bytes : 0;
    }
    const double taken = taken_over(n, rest);
    return {.least = result.least - taken, .all = result.all - taken};
  }

  // Returns the bytes of inputs that outputs take over, each the first one that ends here.
  double taken_over(std::size_t n, Set rest) const {
    std::vector<std::size_t> from, to;
    double bytes = 0;
    for (const Reuse& reuse : reuses_[n]) {
      const Block& ending = blocks_[reuse.from];
      if (!ending.leaves && (ending.readers & rest) == 0 &&
          std::ranges::find(from, reuse.from) == from.end() &&
          std::ranges::find(to, reuse.to) == to.end()) {
        from.push_back(reuse.from);
        to.push_back(reuse.to);
        bytes += ending.bytes;
      }
    }
    return bytes;
  }

  // Returns the cost behind a unit, which is infinite above the limit. The fourth power of bytes
  // weighs full steps more than long waits.
  double cost(const Unit& unit, Set done, double before, const Goal& goal) const {
    for (const std::size_t n : unit.nodes) {
      const ActiveBytes bytes = active(n, done);
      if (bytes.least > goal.limit) {
        return std::numeric_limits<double>::infinity();
      }
      const double square = bytes.all * bytes.all;
      before = goal.peak_only ? std::max(before, bytes.least) : before + square * square;
      done |= bit(n);
    }
    return before;
  }

  // Equal costs prefer the given order.
  Found best(const Goal& goal) const {
    if (sets_.empty()) {
      return given(goal);
    }
    std::unordered_map<Set, Step> steps{{0, {.cost = 0}}};
    for (const Set done : sets_) {
      const double before = steps[done].cost;
      for (std::size_t u = 0; u < units_.size(); ++u) {
        if (may_run(units_[u], done)) {
          Step& step = steps[done | units_[u].members];
          const double after = cost(units_[u], done, before, goal);
          if (after < step.cost || (after == step.cost && u > step.unit)) {
            step = {.cost = after, .unit = u};
          }
        }
      }
    }
    Found found{.cost = steps[sets_.back()].cost, .units = {}};
    for (Set done = sets_.back(); done != 0; done &= ~units_[found.units.back()].members) {
      found.units.push_back(steps[done].unit);
    }
    std::ranges::reverse(found.units);
    return found;
  }

  Found given(const Goal& goal) const {
    Found found;
    Set done = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      found.cost = cost(units_[u], done, found.cost, goal);
      found.units.push_back(u);
      done |= units_[u].members;
    }
    return found;
  }

  const Graph& graph_;
  const std::vector<Uses>& uses_;
  std::size_t backward_, first_, count_;
  std::unordered_map<std::size_t, std::size_t> block_of_;  // by TensorId of roots
  std::vector<Block> blocks_;
  std::vector<std::vector<Reuse>> reuses_;  // by node
  std::vector<double> workspaces_;          // by node
  std::vector<Unit> units_;
  std::vector<Set> sets_;
};

// Divides the backward pass into parts.
class Divider {
 public:
  Divider(const Graph& graph, std::size_t backward)
      : graph_(graph), backward_(backward), uses_(graph.tensors().size()) {
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      // An update follows the gradient that it reads wherever that is.
      const bool reads_count = n < backward || may_change_places(n);
      visit(n, [&](std::size_t root, bool writes) {
        Uses& uses = uses_[root];
        if (writes) {
          uses.first_write = std::min(uses.first_write, n);
          uses.last_write = n;
        }
        uses.last_touch = writes || reads_count ? n : uses.last_touch;
      });
    }
  }

  const std::vector<Uses>& uses() const { return uses_; }

  // Returns the nodes at which parts of several nodes begin, and those behind their last ones.
  std::vector<std::pair<std::size_t, std::size_t>> parts() const {
    std::vector<std::pair<std::size_t, std::size_t>> result;
    std::size_t first = backward_;
    const auto close = [&](std::size_t end) {
      if (end > first + 1 && end - first <= most_nodes) {
        result.emplace_back(first, end);
      }
      first = end;
    };
    std::vector<std::size_t> waiting;  // gradients that later nodes need
    for (std::size_t n = backward_; n < graph_.nodes().size(); ++n) {
      const bool is_fixed = !may_change_places(n);
      if (is_fixed) {
        close(n);
        first = n + 1;
      }
      visit(n, [&](std::size_t root, bool writes) {
        if (writes && uses_[root].first_write == n) {
          waiting.push_back(root);
        }
      });
      std::erase_if(waiting, [&](std::size_t root) { return uses_[root].last_touch <= n; });
      if (is_fixed) {
        continue;
      }
      const bool all_made_here = std::ranges::all_of(
          waiting, [&](std::size_t root) { return uses_[root].last_write == n; });
      if (waiting.size() <= 1 || all_made_here) {
        close(n + 1);
      }
    }
    close(graph_.nodes().size());
    return result;
  }

 private:
  // Returns whether the node is one of the backward pass itself: updates, exchanges and copies have
  // places of their own.
  bool may_change_places(std::size_t n) const {
    const Node& node = graph_.nodes()[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.op->mutates(i)) {
        return false;
      }
    }
    return node.op->lane() == Lane::compute;
  }

  template <class Visit>
  void visit(std::size_t n, const Visit& function) const {
    for_each_access(graph_, Compute{NodeId{static_cast<std::uint32_t>(n)}},
                    [&](const Access& access) {
                      const TensorId root = graph_.root_of(access.tensor);
                      if (!is_persistent(graph_.info(root).role)) {
                        function(index_of(root), access.kind != Access::Kind::read);
                      }
                    });
  }

  const Graph& graph_;
  std::size_t backward_;
  std::vector<Uses> uses_;  // by TensorId of roots
};

}  // namespace

std::vector<NodeId> backward_order(const Graph& graph, std::span<const KernelSpec> specs,
                                   std::size_t first) {
  std::vector<NodeId> order;
  for (std::uint32_t n = 0; n < graph.nodes().size(); ++n) {
    order.push_back(NodeId{n});
  }
  const Divider divider(graph, first);
  std::vector<std::pair<std::size_t, Part>> parts;
  double peak = 0;
  for (const auto& [begin, end] : divider.parts()) {
    parts.emplace_back(begin, Part(graph, specs, divider.uses(), first, begin, end));
    peak = std::max(peak, parts.back().second.least_peak());
  }
  for (const auto& [begin, part] : parts) {
    std::size_t at = begin;
    for (const std::size_t n : part.ordered(peak)) {
      order[at++] = NodeId{static_cast<std::uint32_t>(begin + n)};
    }
  }
  return order;
}

}  // namespace cnn::lms
