#include "allreduce/estimate.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "allreduce/placement.h"
#include "allreduce/step_list.h"

namespace cnn::allreduce {
namespace {

// A buffer among hosts of equally many ranks.
struct Scene {
  double ranks = 1, each = 1;  // each: in a host
  double bytes = 0;            // of the buffer, as messages carry it
  double floats = 0;           // the same in f32, as sums read and write it
  double added = 0;            // seconds to add a whole buffer to another
  double of_node = 1;          // ranks of a NUMA node
  Links links;

  double remote_memory() const { return links.remote_memory.value_or(links.memory); }

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
// buffers of the dimension and written once, then read again and written to all others.
Course shared_grid(const Scene& of, std::vector<int> dims, bool rings) {
  double inside = 1, seconds = 0;
  while (!dims.empty() && inside * dims.front() <= of.each) {
    const double size = dims.front();
    const double near = std::clamp(of.of_node / inside, 1.0, size);
    inside *= size;
    seconds += of.floats / inside *
               ((1 + 2 * near) / of.links.memory + 2 * (size - near) / of.remote_memory());
    dims.erase(dims.begin());
  }
  Course course = grid(of, dims, rings, inside);
  course.latency += 2 * of.links.meeting.value_or(of.links.latency);
  course.stages.push_back(seconds);
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
  const double near = of.of_node / of.ranks;
  return {2 * of.links.meeting.value_or(of.links.latency),
          {2 * of.bytes * (near / of.links.memory + (1 - near) / of.remote_memory())},
          2};
}

// A node in the middle is the busiest: it reads a slice in its own buffers and one beside them,
// writes it once, and later reads the result from afar and writes it to all of its own.
Course shared_by_node(const Scene& of) {
  const double nodes = of.ranks / of.of_node, meeting = of.links.meeting.value_or(of.links.latency);
  const double remote_reads = std::min(nodes - 1, 2.0);
  const double slice = of.bytes / of.of_node;
  const double adding = slice * (1 + of.of_node) / of.links.memory;
  return {(nodes + 2) * meeting,
          {adding + slice * (of.of_node / of.links.memory + remote_reads / of.remote_memory())},
          2,
          (nodes - 1) * adding};
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
  return name == "tree"             ? tree(scene)
         : name == "shared"         ? shared(scene)
         : name == "shared_by_node" ? shared_by_node(scene)
                                    : direct(scene);
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
                    .of_node = static_cast<double>(ranks_by_node(topology).front().size()),
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
