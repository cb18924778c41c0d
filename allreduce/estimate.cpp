#include "allreduce/estimate.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "allreduce/step_list.h"

namespace cnn::allreduce {
namespace {

// A buffer among hosts of equally many ranks.
struct Scene {
  double ranks = 1, each = 1;  // each: in a host
  double bytes = 0;            // of the buffer, as messages carry it
  double floats = 0;           // the same in f32, as sums read and write it
  double added = 0;            // seconds to add a whole buffer to another
  Links links;

  double step() const { return links.latency + 2 * links.post; }
  double outside() const { return links.host / each; }  // of each rank, when all of a host send
  double depth() const { return std::ceil(std::log2(ranks)); }
};

// Latency of one chunk, what each kind of link is busy with the whole buffer, and messages of a
// rank for each chunk.
struct Course {
  double latency = 0;
  std::vector<double> stages = {};
  double messages = 0;
  double fill = 0;  // until the last of a row of ranks has something to do
};

Course ring(const Scene& of) {
  const double speed = of.ranks == of.each ? of.links.rank
                       : of.each == 1      ? of.links.host
                                           : std::min(of.links.rank, of.links.host);
  const double share = (of.ranks - 1) / of.ranks;
  return {2 * (of.ranks - 1) * of.step(),
          {2 * share * of.bytes / speed, share * of.added},
          2 * (of.ranks - 1)};
}

Course direct(const Scene& of) {
  const double inside = (of.each - 1) / of.ranks, outside = (of.ranks - of.each) / of.ranks;
  return {2 * (of.links.latency + 2 * (of.ranks - 1) * of.links.post),
          {2 * inside * of.bytes / of.links.rank, 2 * outside * of.bytes / of.outside(),
           (of.ranks - 1) / of.ranks * of.added},
          2 * (of.ranks - 1)};
}

// Each dimension works on what those before have left to a rank. before: ranks of the dimensions
// that are not among these, as they come first.
Course grid(const Scene& of, const std::vector<int>& dims, bool rings, double before = 1) {
  Course course;
  double left = 1 / before, stride = before;
  for (const int dim : dims) {
    const double size = dim, share = (size - 1) / size * left;
    const double speed = stride * size <= of.each ? of.links.rank : of.outside();
    course.latency += rings ? 2 * (size - 1) * of.step()
                            : 2 * (of.links.latency + 2 * (size - 1) * of.links.post);
    course.stages.push_back(2 * share * of.bytes / speed + share * of.added);
    course.messages += 2 * (size - 1);
    left /= size;
    stride *= size;
  }
  return course;
}

// As a grid whose first dimensions, within a host, have sums in memory: a slice is read in all
// buffers and written once, then read again and written to all others.
Course shared_grid(const Scene& of, std::vector<int> dims, bool rings) {
  double inside = 1;
  while (!dims.empty() && inside * dims.front() <= of.each) {
    inside *= dims.front();
    dims.erase(dims.begin());
  }
  Course course = grid(of, dims, rings, inside);
  course.latency += 2 * of.links.meeting.value_or(of.links.latency);
  course.stages.push_back((2 + 1 / inside) * of.floats / of.links.memory);
  return course;
}

// Distances 1, 2, 4, ...: whole buffers, or halves, quarters, ... and back.
Course distances(const Scene& of, bool halves) {
  Course course{.latency = (halves ? 2 : 1) * of.depth() * of.step(),
                .messages = (halves ? 2 : 1) * of.depth()};
  double inside = 0, outside = 0, added = 0, share = 1;
  for (double distance = 1; distance < of.ranks; distance *= 2) {
    share /= halves ? 2 : 1;
    (distance < of.each ? inside : outside) += (halves ? 2 : 1) * share * of.bytes;
    added += share * of.added;
  }
  course.stages = {inside / of.links.rank + outside / of.outside() + added};
  return course;
}

Course tree(const Scene& of) {
  const double speed = of.ranks == of.each ? of.links.rank : of.outside();
  // Inner ranks of one tree, which are leaves of the other, have two children.
  return {2 * of.depth() * of.step(),
          {1.5 * of.bytes / speed + of.added},
          6,
          (of.depth() - 1) * of.bytes / speed};
}

Course shared(const Scene& of) {
  return {2 * of.links.meeting.value_or(of.links.latency), {2 * of.bytes / of.links.memory}, 2};
}

Course course_of(std::string_view name, const Scene& scene, const Options& options) {
  if (name == "ring" || name == "multi_ring") {
    return ring(scene);
  }
  if (name == "grid_of_rings" || name == "grid_of_direct") {
    return grid(scene, options.dims, name == "grid_of_rings");
  }
  if (name == "shared_rings" || name == "shared_direct") {
    return shared_grid(scene, options.dims, name == "shared_rings");
  }
  if (name == "doubling" || name == "halving") {
    return distances(scene, name == "halving");
  }
  return name == "tree" ? tree(scene) : name == "shared" ? shared(scene) : direct(scene);
}

}  // namespace

// Chunks hide all stages but the slowest under it, and their own latency in a window.
Estimate estimate(const Algorithm& algorithm, const Options& options, const Topology& topology,
                  std::size_t elements, const Links& links) {
  const auto count = static_cast<double>(elements);
  const auto each =
      static_cast<double>(std::ranges::count(topology.host_of, topology.host_of.front()));
  const Scene scene{.ranks = static_cast<double>(topology.ranks()),
                    .each = each,
                    .bytes = count * static_cast<double>(size_of(options.wire)),
                    .floats = count * sizeof(float),
                    .added = count * sizeof(float) * links.add,
                    .links = links};
  if (scene.ranks < 2) {
    return {};
  }
  const Course course = course_of(algorithm.name, scene, options);
  double slowest = 0, sum = 0;
  for (const double stage : course.stages) {
    slowest = std::max(slowest, stage);
    sum += stage;
  }
  const double chunks = options.chunks, waves = std::ceil(chunks * options.rings / options.window);
  const double busy = slowest + (sum - slowest + course.fill) / chunks;
  return {std::max(busy + course.latency, waves * course.latency),
          scene.ranks * course.messages * chunks * options.rings};
}

}  // namespace cnn::allreduce
