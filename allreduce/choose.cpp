#include "allreduce/choose.h"

#include <algorithm>
#include <utility>

#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

constexpr int widest = 16;            // a dimension of more members is divided
constexpr int most_flat = 64;         // ranks that all talk to all
constexpr std::size_t small = 16384;  // elements from which chunks are worth their messages

bool prime(int n) {
  for (int d = 2; d * d <= n; ++d) {
    if (n % d == 0) {
      return false;
    }
  }
  return true;
}

// All ways to write n as ascending factors up to `widest`, or primes.
void factorise(int n, int least, std::vector<int>& so_far, std::vector<std::vector<int>>& all) {
  if (n == 1) {
    all.push_back(so_far);
    return;
  }
  for (int factor = least; factor <= n; ++factor) {
    if (n % factor == 0 && (factor <= widest || prime(factor))) {
      so_far.push_back(factor);
      factorise(n / factor, factor, so_far, all);
      so_far.pop_back();
    }
  }
}

std::vector<std::vector<int>> factorisations(int n) {
  std::vector<int> so_far;
  std::vector<std::vector<int>> all;
  factorise(n, 2, so_far, all);
  return all;
}

// Ranks of each host, if they are as many everywhere; else one.
int ranks_each(const Topology& topology) {
  const auto first = std::ranges::count(topology.host_of, topology.host_of.front());
  for (const int host : topology.host_of) {
    if (std::ranges::count(topology.host_of, host) != first) {
      return 1;
    }
  }
  return static_cast<int>(first);
}

// The host's dimension stands first: what leaves it has shrunk by then.
std::vector<std::vector<int>> grids(const Topology& topology) {
  const int inside = ranks_each(topology);
  std::vector<std::vector<int>> all;
  for (std::vector<int> dims : factorisations(topology.ranks() / inside)) {
    if (inside > 1) {
      dims.insert(dims.begin(), inside);
    }
    if (dims.size() > 1) {
      all.push_back(std::move(dims));
    }
  }
  return all;
}

std::vector<Options> ways(const Algorithm& row, const Topology& topology, const Wish& wish) {
  std::vector<Options> all;
  const std::vector<std::vector<int>> dims =
      row.grid ? grids(topology) : std::vector<std::vector<int>>{{}};
  // Windows that keep links busy without the first chunk waiting behind all others.
  std::vector<std::pair<int, int>> chunks{{1, 1}};
  if (wish.elements >= small && !row.peers_memory) {
    chunks.insert(chunks.end(), {{2, 2}, {16, 3}});
    if (topology.ranks() <= most_flat) {
      chunks.insert(chunks.end(), {{4, 4}, {32, 6}});
    }
  }
  for (const std::vector<int>& of_grid : dims) {
    for (const auto& [count, window] : chunks) {
      all.push_back({wish.order, wish.wire, of_grid, 1, count, window});
    }
  }
  if (row.name == "multi_ring") {
    const int rings = std::min(8, ranks_each(topology));
    for (Options& options : all) {
      options.rings = rings;
    }
  }
  return all;
}

bool worth_a_look(const Algorithm& row, const Topology& topology, const Wish& wish) {
  const bool one_host = topology.host_of.front() == topology.host_of.back();
  if (row.peers_memory) {
    return wish.peers_memory && one_host;
  }
  const bool all_to_all = row.name == "direct" || row.name == "weighted";
  return !all_to_all || topology.ranks() <= most_flat;
}

bool can(const Algorithm& row, const Topology& topology, const Options& options) {
  try {
    make_plan(row, topology, 0, 0, options);
    return true;
  } catch (const Error&) {  // another order, a narrow wire
    return false;
  }
}

}  // namespace

std::vector<Candidate> candidates(const Topology& topology, const Wish& wish, const Links& links) {
  std::vector<Candidate> all;
  for (const Algorithm& row : catalog()) {
    if (!worth_a_look(row, topology, wish)) {
      continue;
    }
    for (const Options& options : ways(row, topology, wish)) {
      if (can(row, topology, options)) {
        const auto plans = plans_of_all(row, topology, wish.elements, options);
        if (plans[0].chunks.size() <= wish.channels) {
          all.push_back({&row, options, simulate(plans, topology, links)});
        }
      }
    }
  }
  check(!all.empty(), "no all-reduce keeps the order of sums and the wire that were asked for");
  std::ranges::stable_sort(all, {}, &Candidate::seconds);
  return all;
}

}  // namespace cnn::allreduce
