#pragma once

#include <cstddef>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/cost.h"
#include "allreduce/limits.h"
#include "allreduce/simd/table.h"
#include "allreduce/transport.h"

namespace cnn::allreduce {

// The time and memory that a measurement of links may take.
struct CalibrationBudget {
  double seconds = 0.3;                        // approximately
  std::size_t bytes = std::size_t{16} << 20U;  // of the largest message and sum
  bool peers_memory = true;      // whether ranks of a host can address one another's memory
  std::size_t memory_bytes = 0;  // as ProbeOptions::bytes
};

struct LinkSpeeds {
  Links links;
  std::vector<double> of_rank = {};  // as Topology::link; empty: all alike
  LinkSources sources = {};
  Limits limits = {};  // of the hardware; no link is faster
};

// Measures the limits of the hardware and the parameters of the cost model among these ranks:
// barriers, messages to a neighbour in the host and to one in the next host, reads of the memory of
// the next NUMA node, on all ranks at once, and sums. A transfer between hosts is made long enough
// for start-up effects not to count, and is repeated until the two fastest agree. Hosts also
// exchange in pairs, to find one whose link is slow; links that differ by less than a fifth count
// as equal. Links of a kind that these ranks do not have (other hosts, peers in a host) stay as
// `assumed`.
//
// All ranks call it together and get the numbers of rank 0. Those of Links are rounded to a few
// steps per power of two, so that the next run mostly makes the same choice by them. Allocates
// `bytes` and a page or two of shared memory. Throws PeerLost.
LinkSpeeds measure_links(Transport& transport, const simd::Loops& loops, const Topology& topology,
                         const Links& assumed, const CalibrationBudget& limits);

// Broadcasts the speeds of rank 0 and returns them on all ranks. Throws PeerLost.
LinkSpeeds links_of_rank_0(Transport& transport, const Topology& topology, const LinkSpeeds& mine);

}  // namespace cnn::allreduce
