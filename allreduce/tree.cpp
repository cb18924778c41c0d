#include <optional>
#include <vector>

#include "allreduce/algorithms.h"
#include "allreduce/plan_builder.h"

namespace cnn::allreduce {
namespace {

// The neighbours of a rank in a tree.
struct TreeNeighbours {
  std::optional<int> parent;
  std::vector<int> children;
};

// Returns the neighbours of i in a binary tree over 0..n-1 whose leaves are the odd numbers and
// whose root is 0: the lowest bit of a number is its height. This is the double binary tree of
// Sanders, Speck and Träff (2009), as in NCCL.
TreeNeighbours tree_neighbours(int i, int n) {
  TreeNeighbours neighbours;
  int height = 1;
  while (height < n && (i & height) == 0) {
    height *= 2;
  }
  if (i != 0) {
    const int above = (i ^ height) | (height * 2);
    neighbours.parent = above < n ? above : i ^ height;
  }
  if (i != 0 && height > 1) {
    neighbours.children.push_back(i - height / 2);
  }
  int step = height / 2;  // to the child above, or to its substitute if that is too far
  while (step > 0 && i + step >= n) {
    step /= 2;
  }
  if (step > 0) {
    neighbours.children.push_back(i + step);
  }
  return neighbours;
}

// Returns the neighbours in the first or the second tree. The second is the first one mirrored, or
// shifted by one: a leaf of the first is an inner node of the second, so that both directions of
// all links are used.
TreeNeighbours neighbours_of(int rank, int n, bool second) {
  if (!second) {
    return tree_neighbours(rank, n);
  }
  const auto mirrored = [&](int i) { return n % 2 == 0 ? n - 1 - i : (i + 1) % n; };
  TreeNeighbours neighbours = tree_neighbours(n % 2 == 0 ? n - 1 - rank : (rank + n - 1) % n, n);
  if (neighbours.parent) {
    neighbours.parent = mirrored(*neighbours.parent);
  }
  for (int& child : neighbours.children) {
    child = mirrored(child);
  }
  return neighbours;
}

void up_and_down(PlanBuilder& builder, const TreeNeighbours& neighbours, Range range) {
  std::vector<Operand> operands{Operand{}};
  for (const int child : neighbours.children) {
    operands.push_back(builder.receive_to_scratch(child, range));
  }
  if (!neighbours.children.empty()) {
    builder.wait();
    builder.sum(range, operands, !neighbours.parent);
  }
  if (neighbours.parent) {
    builder.send(*neighbours.parent, range);
    builder.wait();
    builder.receive(*neighbours.parent, range);
    builder.wait();
  }
  for (const int child : neighbours.children) {
    builder.send(child, range);
  }
  builder.wait();
}

}  // namespace

RankPlan tree(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const auto chunks = static_cast<std::size_t>(options.chunks);
  const std::vector<Range> halves = slices({0, elements}, 2);
  PlanBuilder builder(options);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    for (std::size_t half = 0; half < 2; ++half) {
      builder.begin_chunk();
      up_and_down(builder, neighbours_of(rank, topology.ranks(), half == 1),
                  slice(halves[half], chunk, chunks));
    }
  }
  return std::move(builder).finish();
}

}  // namespace cnn::allreduce
