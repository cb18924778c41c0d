#pragma once

#include <cstddef>

#include "allreduce/algorithm.h"

// The generators of the catalog's algorithms, each in a file of its name. See Algorithm::plan.
namespace cnn::allreduce {

RankPlan ring(const Topology& topology, int rank, std::size_t elements, const Options& options);
RankPlan multi_ring(const Topology& topology, int rank, std::size_t elements,
                    const Options& options);
RankPlan direct(const Topology& topology, int rank, std::size_t elements, const Options& options);
RankPlan grid_of_rings(const Topology& topology, int rank, std::size_t elements,
                       const Options& options);
RankPlan grid_of_direct(const Topology& topology, int rank, std::size_t elements,
                        const Options& options);
RankPlan shared_rings(const Topology& topology, int rank, std::size_t elements,
                      const Options& options);
RankPlan shared_direct(const Topology& topology, int rank, std::size_t elements,
                       const Options& options);
RankPlan doubling(const Topology& topology, int rank, std::size_t elements, const Options& options);
RankPlan halving(const Topology& topology, int rank, std::size_t elements, const Options& options);
RankPlan tree(const Topology& topology, int rank, std::size_t elements, const Options& options);
RankPlan weighted(const Topology& topology, int rank, std::size_t elements, const Options& options);
RankPlan shuffle(const Topology& topology, int rank, std::size_t elements, const Options& options);
RankPlan shared(const Topology& topology, int rank, std::size_t elements, const Options& options);
RankPlan shared_by_node(const Topology& topology, int rank, std::size_t elements,
                        const Options& options);

}  // namespace cnn::allreduce
