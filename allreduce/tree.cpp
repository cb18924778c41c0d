#include <optional>
#include <vector>

#include "allreduce/algorithms.h"
#include "allreduce/writer.h"

namespace cnn::allreduce {
namespace {

struct Place {
  std::optional<int> parent;
  std::vector<int> children;
};

// In a binary tree over 0..n-1 whose leaves are the odd numbers and whose root is 0: the lowest bit
// of a number is its height.
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
  int step = height / 2;  // to the child above, or to what takes its place where that is too far
  while (step > 0 && i + step >= n) {
    step /= 2;
  }
  if (step > 0) {
    place.children.push_back(i + step);
  }
  return place;
}

// The second tree is the first one mirrored, or turned by one: who is a leaf in the first is none
// in the second, so both directions of all links are used.
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

void up_and_down(Writer& writer, const Place& place, Range range) {
  std::vector<Part> parts{Part{}};
  for (const int child : place.children) {
    parts.push_back(writer.receive_beside(child, range));
  }
  if (!place.children.empty()) {
    writer.wait();
    writer.sum(range, parts, !place.parent);
  }
  if (place.parent) {
    writer.send(*place.parent, range);
    writer.wait();
    writer.receive(*place.parent, range);
    writer.wait();
  }
  for (const int child : place.children) {
    writer.send(child, range);
  }
  writer.wait();
}

}  // namespace

RankPlan tree(const Topology& topology, int rank, std::size_t elements, const Options& options) {
  const auto chunks = static_cast<std::size_t>(options.chunks);
  const std::vector<Range> halves = slices({0, elements}, 2);
  Writer writer(options);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    for (std::size_t half = 0; half < 2; ++half) {
      writer.begin_chunk();
      up_and_down(writer, place_of(rank, topology.ranks(), half == 1),
                  slice(halves[half], chunk, chunks));
    }
  }
  return std::move(writer).finish();
}

}  // namespace cnn::allreduce
