#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "allreduce/algorithm.h"
#include "allreduce/step_list.h"
#include "allreduce/symmetry.h"

// How long an all-reduce takes, as links and processors allow.
namespace cnn::allreduce {

// Seconds and bytes per second. A direction of a link carries its messages one after another.
struct Links {
  double latency = 1e-6;  // of a message
  double post = 0;        // of a processor, to send or to receive a message
  double add = 0;         // per byte added to another
  double rank = 20e9;     // bytes per second between ranks of a host: out of each, and into each
  double host = 12.5e9;   // out of each host, and into it, for all its ranks together
  double memory = 10e9;   // that a rank reads or writes in sums over the memory of others
  // The same in the memory of ranks of other NUMA nodes; unset: as `memory`.
  std::optional<double> remote_memory = {};
  std::optional<double> meeting = {};  // of ranks that see one another's memory; else as latency
};
// Topology::link makes the links of ranks slower or faster than these: that of a host by its first
// rank.

// Seconds from the start of all ranks to the end of the last one, in the lists themselves. A
// message starts when both sides have posted it. Throws Error if ranks wait forever.
double simulate(std::span<const RankPlan> plans, const Topology& topology, const Links& links);

// The same of all ranks, by the plans of those of host 0 alone: memory and time are those of one
// host, whatever the number of hosts. size_scale: what the size of each message and sum is
// multiplied with, where the plans are of another number of elements.
double simulate(std::span<const RankPlan> plans, const Topology& topology, const Links& links,
                const Symmetry& symmetry, double size_scale);

// The seconds that no algorithm which adds in the ranks can fall below in simulate(), for a buffer
// of so many bytes: the largest of what each link, one message and adding take. With the memory of
// peers in sight nothing need travel inside a host: every rank reads and writes as much as a
// buffer. lower_bound() is that of the hardware.
double bound(const Topology& topology, double bytes, const Links& links, bool peers_memory = false);

}  // namespace cnn::allreduce
