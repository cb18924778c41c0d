#include "lms/level_swaps.h"

#include <algorithm>
#include <utility>

#include "lms/policy.h"
#include "lms/stash.h"

namespace cnn::lms {

LevelSwaps::LevelSwaps(const Request& request, const Levels& levels,
                       std::span<const Stashed> tensors)
    : request_(request), levels_(levels) {
  for (const Stashed& tensor : tensors) {
    if (request.graph.info(tensor.tensor).desc.shape.rank() >= 2) {
      tensors_.push_back(&tensor);
    }
  }
}

std::vector<LevelSwap> LevelSwaps::find(const LevelParameters& parameters) const {
  std::vector<LevelSwap> swaps;
  for (const Stashed* tensor : tensors_) {
    if (request_.options.n_tensors >= 0 &&
        std::cmp_greater_equal(swaps.size(), request_.options.n_tensors)) {
      break;
    }
    LevelSwap swap = divide(*tensor, parameters);
    if (!swap.groups.empty()) {
      swaps.push_back(std::move(swap));
    }
  }
  return swaps;
}

LevelSwap LevelSwaps::divide(const Stashed& tensor, const LevelParameters& parameters) const {
  const NodeId producer = levels_.node(tensor.made);
  const auto furthest_near = static_cast<std::int64_t>(levels_.of(producer)) + parameters.threshold;
  LevelSwap swap{.tensor = &tensor, .near = {}, .groups = {}};
  std::vector<NodeId> far;
  for (const StepId use : tensor.uses) {
    const NodeId reader = levels_.node(use);
    const bool is_far = use > tensor.made && std::cmp_greater(levels_.of(reader), furthest_near);
    (is_far ? far : swap.near).push_back(reader);
  }
  std::ranges::stable_sort(far, {}, [&](NodeId node) { return levels_.of(node); });
  swap.groups = group(producer, far, parameters);
  return swap;
}

// A reader joins the previous reader's group if their levels are close.
std::vector<ReaderGroup> LevelSwaps::group(NodeId producer, const std::vector<NodeId>& far,
                                           const LevelParameters& parameters) const {
  std::vector<ReaderGroup> groups;
  std::size_t last_level = 0;
  for (const NodeId reader : far) {
    const std::size_t level = levels_.of(reader);
    if (groups.empty() || parameters.groupby <= 0 ||
        std::cmp_greater(level - last_level, parameters.groupby)) {
      groups.push_back({});
      if (!waits_for_in(parameters.sync)) {
        groups.back().trigger = trigger(producer, reader, parameters.ahead);
      }
    }
    groups.back().readers.push_back(reader);
    last_level = level;
  }
  return groups;
}

// Returns a node on which the consumer depends, of the nearest level with such a node that is more
// than `ahead`, and at most ten more, levels before the consumer.
std::optional<NodeId> LevelSwaps::trigger(NodeId producer, NodeId consumer,
                                          std::int64_t ahead) const {
  constexpr std::int64_t levels_back = 10;
  const std::int64_t end = static_cast<std::int64_t>(levels_.of(consumer)) - ahead;
  const std::int64_t lowest =
      std::max(end - levels_back, static_cast<std::int64_t>(levels_.of(producer)) + 1);
  for (std::int64_t level = end - 1; level >= lowest; --level) {
    for (const NodeId node : levels_.at(static_cast<std::size_t>(level))) {
      if (levels_.reaches(node, consumer)) {
        return node;
      }
    }
  }
  return std::nullopt;
}

}  // namespace cnn::lms
