#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "allreduce/algorithm.h"
#include "allreduce/step_list.h"
#include "allreduce/symmetry.h"

// The cost model of an all-reduce, in the LogGP family (Alexandrov et al., 1995): latency, overhead
// of a processor per message, and bandwidth of each link.
namespace cnn::allreduce {

// The parameters, in seconds and bytes per second. Each direction of a link carries its messages
// one after another.
struct Links {
  double latency = 1e-6;  // of a message
  double post = 0;        // overhead: a processor's time to send or receive a message
  double add = 0;         // a processor's time per byte that is added to another
  double rank = 20e9;     // bandwidth of a rank within its host, in each direction
  double host = 12.5e9;   // bandwidth of a host, in each direction, for all its ranks together
  double memory = 10e9;   // bandwidth of a rank that reads or writes the memory of peers in sums
  // The same for the memory of other NUMA nodes; not set: as `memory`.
  std::optional<double> remote_memory = {};
  // The time of a barrier of ranks that share memory; not set: as `latency`.
  std::optional<double> barrier = {};
};
// Topology::link scales the links of each rank, and that of a host by its first rank.

// Returns the seconds from the start of all ranks to the end of the last one, by discrete-event
// simulation of the step lists. A message starts when both sides have posted it. Throws Error if
// the ranks deadlock.
double simulate(std::span<const RankPlan> plans, const Topology& topology, const Links& links);

// Returns the same by the plans of the ranks of host 0 alone, which stand for all by the symmetry:
// memory and time do not grow with the number of hosts. size_scale: the factor for the sizes of all
// messages and sums, where the plans are for another number of elements.
double simulate(std::span<const RankPlan> plans, const Topology& topology, const Links& links,
                const Symmetry& symmetry, double size_scale);

// Returns a lower bound, in seconds, of simulate() for any algorithm that adds in the ranks, for a
// buffer of so many bytes: the largest of the times of each link, of one message and of adding.
// peers_memory: ranks of a host address one another's memory, so that nothing travels inside a
// host, but every rank reads and writes as much as a buffer. See lower_bound() for the hardware's
// bound.
double bound(const Topology& topology, double bytes, const Links& links, bool peers_memory = false);

}  // namespace cnn::allreduce
