#include "allreduce/estimate.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "allreduce/rank_order.h"
#include "allreduce/step_list.h"

namespace cnn::allreduce {
namespace {

// The inputs of the formulas: a buffer among hosts of equally many ranks.
struct Problem {
  double ranks = 1, each = 1;  // each: the ranks of a host
  double bytes = 0;            // of the buffer in the wire's type
  double floats = 0;           // of the buffer in f32
  double added = 0;            // seconds to add a whole buffer to another
  double of_node = 1;          // ranks of a NUMA node
  Links links;

  double remote_memory() const { return links.remote_memory.value_or(links.memory); }

  double step() const { return links.latency + 2 * links.post; }
  double outside() const {
    return links.host / each;
  }  // bandwidth of a rank when all ranks of the host send
  double depth() const { return std::ceil(std::log2(ranks)); }
};

// The cost of an algorithm: the latency of one chunk, the time for which the whole buffer occupies
// each kind of link (`stages`), and the messages of a rank per chunk.
struct Cost {
  double latency = 0;
  std::vector<double> stages = {};
  double messages = 0;
  double fill = 0;  // the time to fill the pipeline
};

Cost ring(const Problem& problem) {
  const double speed = problem.ranks == problem.each ? problem.links.rank
                       : problem.each == 1           ? problem.links.host
                                           : std::min(problem.links.rank, problem.links.host);
  const double share = (problem.ranks - 1) / problem.ranks;
  return {2 * (problem.ranks - 1) * problem.step(),
          {2 * share * problem.bytes / speed, share * problem.added},
          2 * (problem.ranks - 1)};
}

Cost direct(const Problem& problem) {
  const double inside = (problem.each - 1) / problem.ranks,
               outside = (problem.ranks - problem.each) / problem.ranks;
  return {2 * (problem.links.latency + 2 * (problem.ranks - 1) * problem.links.post),
          {2 * inside * problem.bytes / problem.links.rank,
           2 * outside * problem.bytes / problem.outside(),
           (problem.ranks - 1) / problem.ranks * problem.added},
          2 * (problem.ranks - 1)};
}

// Each dimension works on the slice that earlier dimensions have left to a rank. before: the
// product of those dimensions.
Cost grid(const Problem& problem, const std::vector<int>& dims, bool rings, double before = 1) {
  Cost cost;
  double left = 1 / before, stride = before;
  for (const int dim : dims) {
    const double size = dim, share = (size - 1) / size * left;
    const double speed = stride * size <= problem.each ? problem.links.rank : problem.outside();
    cost.latency += rings ? 2 * (size - 1) * problem.step()
                          : 2 * (problem.links.latency + 2 * (size - 1) * problem.links.post);
    cost.stages.push_back(2 * share * problem.bytes / speed + share * problem.added);
    cost.messages += 2 * (size - 1);
    left /= size;
    stride *= size;
  }
  return cost;
}

// A grid whose dimensions within a host sum in shared memory: a slice is read in all buffers of the
// dimension and written once, then read again and written to all others.
Cost shared_grid(const Problem& problem, std::vector<int> dims, bool rings) {
  double inside = 1, seconds = 0;
  while (!dims.empty() && inside * dims.front() <= problem.each) {
    const double size = dims.front();
    const double near = std::clamp(problem.of_node / inside, 1.0, size);
    inside *= size;
    seconds +=
        problem.floats / inside *
        ((1 + 2 * near) / problem.links.memory + 2 * (size - near) / problem.remote_memory());
    dims.erase(dims.begin());
  }
  Cost cost = grid(problem, dims, rings, inside);
  cost.latency += 2 * problem.links.barrier.value_or(problem.links.latency);
  cost.stages.push_back(seconds);
  return cost;
}

// The cost of recursive doubling, or of halving and doubling.
Cost distances(const Problem& problem, bool halves) {
  Cost cost{.latency = (halves ? 2 : 1) * problem.depth() * problem.step(),
            .messages = (halves ? 2 : 1) * problem.depth()};
  double inside = 0, outside = 0, added = 0, share = 1;
  for (double distance = 1; distance < problem.ranks; distance *= 2) {
    share /= halves ? 2 : 1;
    (distance < problem.each ? inside : outside) += (halves ? 2 : 1) * share * problem.bytes;
    added += share * problem.added;
  }
  cost.stages = {inside / problem.links.rank + outside / problem.outside() + added};
  return cost;
}

Cost tree(const Problem& problem) {
  const double speed = problem.ranks == problem.each ? problem.links.rank : problem.outside();
  // Inner ranks of one tree, which are leaves of the other, have two children.
  return {2 * problem.depth() * problem.step(),
          {1.5 * problem.bytes / speed + problem.added},
          6,
          (problem.depth() - 1) * problem.bytes / speed};
}

Cost shared(const Problem& problem) {
  const double near = problem.of_node / problem.ranks;
  return {
      2 * problem.links.barrier.value_or(problem.links.latency),
      {2 * problem.bytes * (near / problem.links.memory + (1 - near) / problem.remote_memory())},
      2};
}

// A NUMA node in the middle is the bottleneck: it reads a slice in its own buffers and in one more,
// writes it once, later reads the result from another node and writes it to all its own buffers.
Cost shared_by_node(const Problem& problem) {
  const double nodes = problem.ranks / problem.of_node,
               barrier = problem.links.barrier.value_or(problem.links.latency);
  const double remote_reads = std::min(nodes - 1, 2.0);
  const double slice = problem.bytes / problem.of_node;
  const double adding = slice * (1 + problem.of_node) / problem.links.memory;
  return {(nodes + 2) * barrier,
          {adding + slice * (problem.of_node / problem.links.memory +
                             remote_reads / problem.remote_memory())},
          2,
          (nodes - 1) * adding};
}

Cost cost_of(std::string_view name, const Problem& problem, const Options& options) {
  if (name == "ring" || name == "multi_ring") {
    return ring(problem);
  }
  if (name == "grid_of_rings" || name == "grid_of_direct") {
    return grid(problem, options.dims, name == "grid_of_rings");
  }
  if (name == "shared_rings" || name == "shared_direct") {
    return shared_grid(problem, options.dims, name == "shared_rings");
  }
  if (name == "doubling" || name == "halving") {
    return distances(problem, name == "halving");
  }
  return name == "tree"             ? tree(problem)
         : name == "shared"         ? shared(problem)
         : name == "shared_by_node" ? shared_by_node(problem)
                                    : direct(problem);
}

}  // namespace

// Chunks are a pipeline: the slowest stage hides the others, and a window hides the latency.
Estimate estimate(const Algorithm& algorithm, const Options& options, const Topology& topology,
                  std::size_t elements, const Links& links) {
  const auto count = static_cast<double>(elements);
  const auto each =
      static_cast<double>(std::ranges::count(topology.host_of, topology.host_of.front()));
  const Problem problem{.ranks = static_cast<double>(topology.ranks()),
                        .each = each,
                        .bytes = count * static_cast<double>(size_of(options.wire)),
                        .floats = count * sizeof(float),
                        .added = count * sizeof(float) * links.add,
                        .of_node = static_cast<double>(ranks_by_node(topology).front().size()),
                        .links = links};
  if (problem.ranks < 2) {
    return {};
  }
  const Cost cost = cost_of(algorithm.name, problem, options);
  double slowest = 0, sum = 0;
  for (const double stage : cost.stages) {
    slowest = std::max(slowest, stage);
    sum += stage;
  }
  const double chunks = options.chunks, waves = std::ceil(chunks * options.rings / options.window);
  const double busy = slowest + (sum - slowest + cost.fill) / chunks;
  return {std::max(busy + cost.latency, waves * cost.latency),
          problem.ranks * cost.messages * chunks * options.rings};
}

}  // namespace cnn::allreduce
