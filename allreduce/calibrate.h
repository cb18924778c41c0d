#pragma once

#include <cstddef>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/cost.h"
#include "allreduce/simd/table.h"
#include "allreduce/transport.h"

namespace cnn::allreduce {

// How much a measurement of links may take.
struct CalibrationLimits {
  double seconds = 0.3;                        // about
  std::size_t bytes = std::size_t{16} << 20U;  // of the largest message and sum
  bool peers_memory = true;                    // ranks of a host see one another's
};

struct LinkSpeeds {
  Links links;
  std::vector<double> of_rank;  // as Topology::link; empty: all alike
};

// Measures what Links says of these ranks: meetings, messages to a neighbour in the host and to one
// in the next host, all ranks at once, and sums. What these ranks have nothing of (other hosts,
// peers in a host) stays as `assumed`. Hosts exchange in pairs too, so that one with a slow link is
// told from those that talk to it; what differs by less than a fifth is alike. All ranks call it
// together and get rank 0's numbers, rounded to a few steps for each power of two, so that a choice
// by them is mostly the same in the next run. Takes room of the transport: `bytes`, and a page or
// two. Throws PeerLost.
LinkSpeeds measure_links(Transport& transport, const simd::Loops& loops, const Topology& topology,
                         const Links& assumed, const CalibrationLimits& limits);

// Rank 0's speeds on all ranks.
LinkSpeeds links_of_first(Transport& transport, const simd::Loops& loops, const Topology& topology,
                          const LinkSpeeds& mine);

}  // namespace cnn::allreduce
