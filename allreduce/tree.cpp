#include <optional>
#include <vector>

#include "allreduce/algorithms.h"
#include "allreduce/plan_builder.h"

namespace cnn::allreduce {
namespace {

// The neighbours of a rank in a tree.
struct Place {
  std::optional<int> parent;
  std::vector<int> children;
};

// Returns the neighbours of i in a binary tree over 0..n-1 whose leaves are the odd numbers and
// whose root is 0: the lowest bit of a number is its height. This is the double binary tree of
// Sanders, Speck and Träff (2009), as in NCCL.
Place place_in_tree(int i, int n) {
  Place place;
  int height = 1;
  while (height < n && (i & height) == 0) {
    height *= 2;
  }
  if (i != 0) {
    const int above = (i ^ height) | (height * 2);
    place.parent = above < n ? above : i ^ height;
  }
  if (i != 0 && height > 1) {
    place.children.push_back(i - height / 2);
  }
  int step = height / 2;  // to the child above, or to its substitute if that is too far
  while (step > 0 && i + step >= n) {
    step /= 2;
  }
  if (step > 0) {
    place.children.push_back(i + step);
  }
  return place;
}

// Returns the neighbours in the first or the second tree. The second is the first one mirrored, or
// shifted by one: a leaf of the first is an inner node of the second, so that both directions of
// all links are used.
Place place_of(int rank, int n, bool second) {
  if (!second) {
    return place_in_tree(rank, n);
  }
  const auto mirrored = [&](int i) { return n % 2 == 0 ? n - 1 - i : (i + 1) % n; };
  Place place = place_in_tree(n % 2 == 0 ? n - 1 - rank : (rank + n - 1) % n, n);
  if (place.parent) {
    place.parent = mirrored(*place.parent);
  }
  for (int& child : place.children) {
    child = mirrored(child);
  }
  return place;
}

void up_and_down(PlanBuilder& builder, const Place& place, Range range) {
  std::vector<Operand> operands{Operand{}};
  for (const int child : place.children) {
    operands.push_back(builder.receive_to_scratch(child, range));
  }
  if (!place.children.empty()) {
    builder.wait();
    builder.sum(range, operands, !place.parent);
  }
  if (place.parent) {
    builder.send(*place.parent, range);
    builder.wait();
    builder.receive(*place.parent, range);
    builder.wait();
  }
  for (const int child : place.children) {
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
      up_and_down(builder, place_of(rank, topology.ranks(), half == 1),
                  slice(halves[half], chunk, chunks));
    }
  }
  return std::move(builder).finish();
}

}  // namespace cnn::allreduce
