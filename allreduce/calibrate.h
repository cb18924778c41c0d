#pragma once

#include <cstddef>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/cost.h"
#include "allreduce/limits.h"
#include "allreduce/simd/table.h"
#include "allreduce/transport.h"

namespace cnn::allreduce {

// How much a measurement of links may take.
struct CalibrationLimits {
  double seconds = 0.3;                        // about
  std::size_t bytes = std::size_t{16} << 20U;  // of the largest message and sum
  bool peers_memory = true;                    // ranks of a host see one another's
  std::size_t memory_bytes = 0;                // as ProbeOptions::bytes
};

struct LinkSpeeds {
  Links links;
  std::vector<double> of_rank = {};  // as Topology::link; empty: all alike
  LinkSources sources = {};
  Limits limits = {};  // of the hardware; no link is faster
};

// Measures the hardware's limits, and what Links says of these ranks: meetings, messages to a
// neighbour in the host and to one in the next host, reads of the memory of a rank of the next NUMA
// node, all ranks at once, and sums. A transfer
// between hosts lasts until start-up effects no longer count and is repeated until the two fastest
// agree. Links of a kind that these ranks do not have (other hosts, peers in a host) stay as
// `assumed`. Hosts exchange in pairs too, so that one with a slow link is told from those that talk
// to it; links that differ by less than a fifth count as alike. All ranks call it together and get
// rank 0's numbers. Those of Links are rounded to a few steps for each power of two, so that a
// choice by them is mostly the same in the next run. Takes room of the transport: `bytes`, and a
// page or two. Throws PeerLost.
LinkSpeeds measure_links(Transport& transport, const simd::Loops& loops, const Topology& topology,
                         const Links& assumed, const CalibrationLimits& limits);

// Rank 0's speeds on all ranks.
LinkSpeeds links_of_first(Transport& transport, const Topology& topology, const LinkSpeeds& mine);

}  // namespace cnn::allreduce
