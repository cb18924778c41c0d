#pragma once

#include <cstddef>
#include <string>
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
