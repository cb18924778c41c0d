#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "allreduce/algorithm.h"
#include "tests/support/allreduce/proof.h"

namespace cnn::tests {

// Makes the action lists of all ranks, proves them and returns their traffic.
inline std::vector<allreduce::Traffic> proved(const std::string& algorithm,
                                              const allreduce::Topology& topology,
                                              std::size_t elements,
                                              const allreduce::Options& options = {}) {
  const auto plans =
      allreduce::plans_of_all(allreduce::find(algorithm), topology, elements, options);
  return allreduce::prove(plans, {elements, options.order, options.dims});
}

// Returns the plan of one rank, all ranks being on one host.
inline allreduce::RankPlan plan_on_one_host(const std::string& algorithm, int ranks, int rank,
                                            std::size_t elements,
                                            const allreduce::Options& options = {}) {
  return allreduce::make_plan(allreduce::find(algorithm), allreduce::ranks_on_hosts(1, ranks), rank,
                              elements, options);
}

// Returns the actions of one kind, in order.
template <class Kind>
std::vector<Kind> actions_of(const allreduce::Chunk& chunk) {
  std::vector<Kind> result;
  for (const allreduce::Action& action : chunk.actions) {
    if (const auto* const found = std::get_if<Kind>(&action)) {
      result.push_back(*found);
    }
  }
  return result;
}
template <class Kind>
std::vector<Kind> actions_of(const allreduce::RankPlan& plan) {
  std::vector<Kind> result;
  for (const allreduce::Chunk& chunk : plan.chunks) {
    const std::vector<Kind> found = actions_of<Kind>(chunk);
    result.insert(result.end(), found.begin(), found.end());
  }
  return result;
}

// Returns the rounds of communication that follow one another: each ends with a wait.
inline std::size_t rounds_of(const allreduce::RankPlan& plan) {
  return actions_of<allreduce::Wait>(plan).size();
}

// Returns the destinations, or the sizes, of all messages that a plan sends, in order.
inline std::vector<int> destinations_of(const allreduce::RankPlan& plan) {
  std::vector<int> result;
  for (const allreduce::Send& send : actions_of<allreduce::Send>(plan)) {
    result.push_back(send.to);
  }
  return result;
}
inline std::vector<std::size_t> sizes_sent(const allreduce::RankPlan& plan) {
  std::vector<std::size_t> result;
  for (const allreduce::Send& send : actions_of<allreduce::Send>(plan)) {
    result.push_back(send.range.size());
  }
  return result;
}

// Returns all ordered factorisations of n into at most `most` factors above 1; for n = 1 the single
// factor 1.
inline std::vector<std::vector<int>> factorisations(int n, std::size_t most = 8) {
  std::vector<std::vector<int>> result{{n}};
  for (int first = 2; most > 1 && first < n; ++first) {
    if (n % first == 0) {
      for (std::vector<int> rest : factorisations(n / first, most - 1)) {
        rest.insert(rest.begin(), first);
        result.push_back(rest);
      }
    }
  }
  return result;
}

}  // namespace cnn::tests
