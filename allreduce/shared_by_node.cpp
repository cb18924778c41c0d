#include <algorithm>
#include <cstddef>
#include <vector>

#include "allreduce/algorithms.h"
#include "allreduce/plan_builder.h"
#include "allreduce/rank_order.h"

namespace cnn::allreduce {
namespace {

// The NUMA nodes of a host from the view of one of its ranks.
struct Nodes {
  std::vector<std::vector<int>> ranks;  // of each node, in the order of sums
  std::size_t mine = 0;                 // the node of this rank
  std::size_t place = 0;                // of this rank in its node

  std::size_t count() const { return ranks.size(); }
  const std::vector<int>& own() const { return ranks[mine]; }
  bool is_last() const { return mine + 1 == count(); }
};

Nodes nodes_of(const Topology& topology, int rank) {
  Nodes nodes{.ranks = ranks_by_node(topology)};
  for (std::size_t node = 0; node < nodes.count(); ++node) {
    const auto place = std::ranges::find(nodes.ranks[node], rank);
    if (place != nodes.ranks[node].end()) {
      nodes.mine = node;
      nodes.place = static_cast<std::size_t>(place - nodes.ranks[node].begin());
    }
  }
  return nodes;
}

Operand buffer_of(int owner, int rank) {
  return owner == rank ? Operand{}
                       : Operand{Operand::Source::peer_buffer, static_cast<std::size_t>(owner)};
}

// Adds the buffers of this rank's node to the sums that the previous node has left in slices of its
// own ranks' buffers. The last node writes the result into all of its buffers.
void add_own_node(PlanBuilder& builder, const Nodes& nodes, int rank, Range chunk) {
  std::vector<Operand> operands;
  for (const int owner : nodes.own()) {
    operands.push_back(buffer_of(owner, rank));
  }
  const Range mine = slice(chunk, nodes.place, nodes.own().size());
  if (nodes.mine == 0) {
    builder.sum(mine, operands, false);
    return;
  }
  const std::vector<int>& before = nodes.ranks[nodes.mine - 1];
  operands.insert(operands.begin(), Operand{});
  for (std::size_t k = 0; k < before.size(); ++k) {
    const Range left = slice(chunk, k, before.size());
    const Range range{std::max(mine.begin, left.begin), std::min(mine.end, left.end)};
    operands.front() = buffer_of(before[k], rank);
    if (range.begin < range.end) {
      builder.sum(range, operands, nodes.is_last(),
                  nodes.is_last() ? std::span<const int>(nodes.own()) : std::span<const int>());
    }
  }
}

void write_chunk(PlanBuilder& builder, const Nodes& nodes, int rank, Range chunk) {
  std::vector<int> everyone;
  for (const std::vector<int>& node : nodes.ranks) {
    everyone.insert(everyone.end(), node.begin(), node.end());
  }
  // All ranks of a host pass equally many barriers in a chunk. The barrier before a node's turn
  // joins it with the previous node, which hands over; the other nodes pass a barrier of their own
  // ranks.
  for (std::size_t turn = 0; turn < nodes.count(); ++turn) {
    std::vector<int> group = nodes.own();
    if (turn > 0 && (nodes.mine == turn || nodes.mine + 1 == turn)) {
      group = nodes.ranks[turn - 1];
      group.insert(group.end(), nodes.ranks[turn].begin(), nodes.ranks[turn].end());
    }
    builder.barrier(group);
    if (nodes.mine == turn) {
      add_own_node(builder, nodes, rank, chunk);
    }
  }
  builder.barrier(everyone);
  if (!nodes.is_last()) {
    const std::vector<int>& last = nodes.ranks.back();
    const Operand result = buffer_of(last[nodes.place % last.size()], rank);
    builder.sum(slice(chunk, nodes.place, nodes.own().size()), {&result, 1}, false, nodes.own());
  }
  builder.barrier(everyone);
}

}  // namespace

// Computes the sums of `shared`, in the same order and so with the same bits. The partial sum goes
// from one NUMA node to the next, whose ranks read one buffer of another node instead of all of
// them. While a node adds one chunk, the previous node adds the next one.
RankPlan shared_by_node(const Topology& topology, int rank, std::size_t elements,
                        const Options& options) {
  const Nodes nodes = nodes_of(topology, rank);
  if (nodes.count() == 1) {
    return shared(topology, rank, elements, options);
  }
  return in_chunks(options, {0, elements}, [&](PlanBuilder& builder, Range range) {
    if (!range.empty()) {
      write_chunk(builder, nodes, rank, range);
    }
  });
}

}  // namespace cnn::allreduce
