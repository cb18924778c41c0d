#include "allreduce/choose.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "allreduce/estimate.h"
#include "allreduce/rank_order.h"
#include "allreduce/symmetry.h"
#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

constexpr int widest = 16;            // the largest dimension that is not divided further
constexpr int max_flat = 64;          // the most ranks for which all-to-all messages are considered
constexpr int max_in_window = 8;      // upper limit for chunks that the user requests
constexpr std::size_t small = 16384;  // elements from which on chunks are worth their messages
constexpr int few_ranks = 16;         // up to this many, all candidates are simulated
constexpr double max_messages = 1.2e6;          // upper limit for simulation
constexpr double max_messages_of_many = 1.5e5;  // the limit for many ranks without a symmetry

bool prime(int n) {
  for (int d = 2; d * d <= n; ++d) {
    if (n % d == 0) {
      return false;
    }
  }
  return true;
}

// Appends all factorisations of n into ascending factors that are at most `widest` or prime.
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

// Returns the ranks of each host if all hosts have equally many, otherwise 1.
int ranks_each(const Topology& topology) { return ranks_of_each_host(topology).value_or(1); }

// Returns the grids to consider. The dimension within a host comes first, so that less data leaves
// the host. It may be two dimensions, the NUMA node first, where the ranks of a host have several
// nodes.
std::vector<std::vector<int>> grids_of(const Topology& topology) {
  const int inside = ranks_each(topology);
  std::vector<std::vector<int>> of_host(1);
  if (inside > 1) {
    of_host = {{inside}};
    if (const std::optional<int> node = ranks_of_each_node(topology); node && *node > 1) {
      of_host.push_back({*node, inside / *node});
    }
  }
  std::vector<std::vector<int>> all;
  for (const std::vector<int>& first : of_host) {
    for (std::vector<int> dims : factorisations(topology.ranks() / inside)) {
      dims.insert(dims.begin(), first.begin(), first.end());
      if (dims.size() > 1) {
        all.push_back(std::move(dims));
      }
    }
  }
  return all;
}

// Returns pairs of a number of chunks and a window that keep the links busy without the first chunk
// waiting behind all others.
std::vector<std::pair<int, int>> chunkings_of(const Algorithm& row, const Topology& topology,
                                              const Requirements& requirements) {
  std::vector<std::pair<int, int>> chunks{{1, 1}};
  if (requirements.pieces > 0) {
    chunks = {{requirements.pieces, std::min(requirements.pieces, max_in_window)}};
  } else if (requirements.shape.chunk_bytes > 0) {
    const std::size_t bytes = requirements.elements * size_of(requirements.wire);
    const std::size_t whole = divide_up(bytes, requirements.shape.chunk_bytes);
    if (whole > requirements.channels) {
      return {};
    }
    const auto count = static_cast<int>(std::max<std::size_t>(whole, 1));
    chunks = {{count, std::min(count, max_in_window)}};
  } else if (requirements.elements >= small && (!row.peers_memory || row.grid || row.serial)) {
    const bool many = topology.ranks() > max_flat;  // Long paths need more chunks in flight.
    chunks.insert(chunks.end(), {{2, 2}, {16, many ? 4 : 3}});
    if (!many) {
      chunks.insert(chunks.end(), {{4, 4}, {32, 6}});
    }
  }
  for (auto& [count, window] : chunks) {
    window = requirements.shape.window > 0 ? std::min(requirements.shape.window, count) : window;
  }
  return chunks;
}

std::vector<Options> options_of(const Algorithm& row, const Topology& topology,
                                const Requirements& requirements) {
  std::vector<Options> all;
  std::vector<std::vector<int>> dims(1, requirements.shape.dims);
  if (!row.grid) {
    dims = {{}};
  } else if (requirements.shape.dims.empty()) {
    dims = grids_of(topology);
  }
  for (const std::vector<int>& of_grid : dims) {
    for (const auto& [count, window] : chunkings_of(row, topology, requirements)) {
      all.push_back({requirements.order, requirements.wire, of_grid, 1, count, window});
    }
  }
  if (row.name == "multi_ring") {
    const int rings =
        requirements.shape.rings > 0 ? requirements.shape.rings : std::min(8, ranks_each(topology));
    for (Options& options : all) {
      options.rings = rings;
      options.window *= rings;  // all rings advance together
    }
  }
  return all;
}

bool is_worth_considering(const Algorithm& row, const Topology& topology,
                          const Requirements& requirements) {
  const bool many_rings = row.name == "multi_ring";
  if ((!requirements.shape.dims.empty() && row.grid != (requirements.shape.dims.size() > 1)) ||
      (requirements.shape.rings > 0 && many_rings != (requirements.shape.rings > 1))) {
    return false;
  }
  if (row.peers_memory) {
    const bool by_node = row.name == "shared_by_node";
    return requirements.peers_memory && (row.grid || topology.one_host()) &&
           (!by_node || ranks_by_node(topology).size() > 1);
  }
  if (row.name == "shuffle") {  // It is never faster than direct, so it is only used on request.
    return false;
  }
  const bool all_to_all = row.name == "direct" || row.name == "weighted";
  return !all_to_all || topology.ranks() <= max_flat;
}

bool can(const Algorithm& row, const Topology& topology, const Options& options) {
  try {
    make_plan(row, topology, 0, 0, options);
    return true;
  } catch (const Error&) {  // The order or the wire is not supported.
    return false;
  }
}

// Returns the one grid that is used for every link speed and size if the sums have an order, as the
// bits depend on the dimensions (unless all are powers of two in a tree of f32). Hosts form one
// dimension or a few of about the same size, and the ranks of a host another. Empty: no grid.
std::vector<int> dims_for_order(const Topology& topology) {
  const int inside = ranks_each(topology);
  if (topology.ranks() == inside || (inside == 1 && topology.ranks() <= widest)) {
    return {};
  }
  const std::vector<std::vector<int>> all = grids_of(topology);
  const auto worse = [](const std::vector<int>& a, const std::vector<int>& b) {
    return std::pair(a.size(), a.back()) < std::pair(b.size(), b.back());
  };
  return all.empty() ? std::vector<int>() : *std::ranges::min_element(all, worse);
}

// Returns whether the bits of the candidate's sums do not depend on what was measured. In the
// shared memory of one host the order of positions costs nothing, so every run has the same bits
// there, with threads or processes.
bool keeps_bits(const Candidate& candidate, const Topology& topology,
                const Requirements& requirements) {
  if (!requirements.shape.dims.empty() || requirements.shape.rings > 0) {
    return true;  // the user fixes them
  }
  if (requirements.order == Order::fast) {
    return !(requirements.peers_memory && topology.one_host()) ||
           ((candidate.algorithm->ordered || candidate.algorithm->serial) &&
            !candidate.algorithm->grid);
  }
  // A 16-bit wire rounds the partial sums between two dimensions.
  const bool pairs = requirements.order == Order::tree && requirements.wire == Wire::f32 &&
                     std::has_single_bit(static_cast<unsigned>(topology.ranks()));
  return pairs || candidate.options.dims == dims_for_order(topology);
}

std::vector<Candidate> candidates_of_catalog(const Topology& topology,
                                             const Requirements& requirements) {
  std::vector<Candidate> all;
  for (const Algorithm& row : catalog()) {
    if (!is_worth_considering(row, topology, requirements)) {
      continue;
    }
    for (const Options& options : options_of(row, topology, requirements)) {
      if (keeps_bits({&row, options, 0}, topology, requirements) && can(row, topology, options)) {
        all.push_back({&row, options, 0});
      }
    }
  }
  return all;
}

void keep_the_fastest(std::vector<Candidate>& all, const Topology& topology,
                      const Requirements& requirements, const Links& links) {
  for (Candidate& candidate : all) {
    candidate.seconds =
        estimate(*candidate.algorithm, candidate.options, topology, requirements.elements, links)
            .seconds;
  }
  const int ranks = topology.ranks();
  const std::size_t kept = ranks <= max_flat ? 8 : ranks <= 4 * max_flat ? 2 : 1;
  std::ranges::stable_sort(all, {}, &Candidate::seconds);
  all.resize(std::min(all.size(), kept));
}

// Returns the candidate that a rule names.
Candidate candidate_of_rule(const Rule& rule, const Requirements& requirements) {
  Candidate candidate{rule.algorithm, rule.options, 0};
  candidate.options.order = requirements.order;
  candidate.options.wire = requirements.wire;
  if (requirements.pieces > 0) {
    candidate.options.chunks = requirements.pieces;
    candidate.options.window = std::min(requirements.pieces, max_in_window);
  }
  return candidate;
}

// The number of chunks does not depend on the elements, so an empty buffer tells it.
bool has_channels(const Candidate& candidate, const Topology& topology,
                  const Requirements& requirements) {
  return make_plan(*candidate.algorithm, topology, 0, 0, candidate.options).chunks.size() <=
         requirements.channels;
}

// Returns the time of one host's plans, simulated for a buffer rounded up to equal slices.
double simulate_by_symmetry(const Candidate& candidate, const Topology& topology,
                            std::size_t elements, const Links& links, const Symmetry& symmetry) {
  const auto unit = static_cast<std::size_t>(topology.ranks()) *
                    static_cast<std::size_t>(candidate.options.chunks) *
                    static_cast<std::size_t>(candidate.options.rings);
  const std::size_t rounded = round_up(elements, unit);
  std::vector<RankPlan> plans;
  plans.reserve(static_cast<std::size_t>(symmetry.representatives()));
  for (int rank = 0; rank < symmetry.representatives(); ++rank) {
    plans.push_back(make_plan(*candidate.algorithm, topology, rank, rounded, candidate.options));
  }
  return simulate(plans, topology, links, symmetry,
                  static_cast<double>(elements) / static_cast<double>(rounded));
}

// Returns the predicted time: by simulating all messages for few ranks, by simulating one host if
// hosts are equal, and by formulas if there are too many messages.
double seconds_of(const Candidate& candidate, const Topology& topology, std::size_t elements,
                  const Links& links) {
  const Algorithm& row = *candidate.algorithm;
  const int ranks = topology.ranks();
  const Estimate rough = estimate(row, candidate.options, topology, elements, links);
  if (ranks > few_ranks && elements >= static_cast<std::size_t>(ranks)) {
    const std::optional<Symmetry> symmetry = symmetry_of(row, topology, candidate.options);
    const double part = symmetry ? 1.0 * symmetry->representatives() / ranks : 1.0;
    if (symmetry && rough.messages * part <= max_messages) {
      return simulate_by_symmetry(candidate, topology, elements, links, *symmetry);
    }
  }
  const double most = ranks <= 4 * max_flat ? max_messages : max_messages_of_many;
  return ranks <= few_ranks || rough.messages <= most
             ? simulate(plans_of_all(row, topology, elements, candidate.options), topology, links)
             : rough.seconds;
}

// Sets the seconds of all candidates and removes those that need too many channels.
void simulate_all(std::vector<Candidate>& all, const Topology& topology,
                  const Requirements& requirements, const Links& links) {
  std::vector<Candidate> fitting;
  for (Candidate& candidate : all) {
    if (has_channels(candidate, topology, requirements)) {
      candidate.seconds = seconds_of(candidate, topology, requirements.elements, links);
      fitting.push_back(std::move(candidate));
    }
  }
  all = std::move(fitting);
}

std::string explain_refusal(const Topology& topology, const Requirements& requirements) {
  const Shape& shape = requirements.shape;
  const std::string channels = std::to_string(requirements.channels);
  if (requirements.pieces > 0) {
    return "no all-reduce in " + std::to_string(requirements.pieces) +
           " pieces has as few chunks as ranks have channels, " + channels +
           "; ask for fewer pieces";
  }
  if (shape.chunk_bytes > 0 || shape.rings > 0 || !shape.dims.empty()) {
    return "no all-reduce of " + std::to_string(topology.ranks()) +
           " ranks and this order of sums and wire has the dimensions, rings and chunks that were "
           "asked for, and at most " +
           channels + " chunks; ask for larger ones, or for fewer rings";
  }
  return "no all-reduce keeps the order of sums and the wire that were asked for";
}

Requirements requirements_of(const Settings& settings, std::size_t elements, std::size_t channels) {
  return {elements, settings.order,  settings.wire, settings.peers_memory,
          channels, settings.pieces, settings.shape};
}

}  // namespace

std::vector<Candidate> candidates(const Topology& topology, const Requirements& requirements,
                                  const Links& links) {
  std::vector<Candidate> all = candidates_of_catalog(topology, requirements);
  if (topology.ranks() > few_ranks) {
    keep_the_fastest(all, topology, requirements, links);
  }
  simulate_all(all, topology, requirements, links);
  check(!all.empty(), explain_refusal(topology, requirements));
  std::ranges::stable_sort(all, {}, &Candidate::seconds);
  return all;
}

std::vector<Candidate> candidates_for(const Settings& settings, std::size_t elements,
                                      std::size_t channels) {
  const Requirements requirements = requirements_of(settings, elements, channels);
  const auto rule =
      std::ranges::find_if(settings.rules, [&](const Rule& r) { return elements <= r.most; });
  if (rule == settings.rules.end() || rule->algorithm == nullptr) {
    return candidates(settings.topology, requirements, settings.links);
  }
  const Candidate fixed = candidate_of_rule(*rule, requirements);
  make_plan(*fixed.algorithm, settings.topology, 0, 0,
            fixed.options);  // throws if the dims do not fit
  std::vector<Candidate> all{fixed};
  simulate_all(all, settings.topology, requirements, settings.links);
  check(!all.empty(), "all-reduce '" + std::string(fixed.algorithm->name) + "' in " +
                          std::to_string(fixed.options.chunks) +
                          " chunks needs more channels than ranks have, " +
                          std::to_string(channels) + "; ask for fewer");
  return all;
}

bool can_reduce(const Settings& settings, std::size_t elements, std::size_t channels) {
  const Requirements requirements = requirements_of(settings, elements, channels);
  const auto some_candidate = [&] {
    return std::ranges::any_of(candidates_of_catalog(settings.topology, requirements),
                               [&](const auto& candidate) {
                                 return has_channels(candidate, settings.topology, requirements);
                               });
  };
  const auto follows = [&](const Rule& rule) {
    if (rule.algorithm == nullptr) {
      return some_candidate();
    }
    const Candidate candidate = candidate_of_rule(rule, requirements);
    return can(*candidate.algorithm, settings.topology, candidate.options) &&
           has_channels(candidate, settings.topology, requirements);
  };
  const bool all_named = !settings.rules.empty() &&
                         settings.rules.back().most == std::numeric_limits<std::size_t>::max();
  return std::ranges::all_of(settings.rules, follows) && (all_named || some_candidate());
}

std::string dims_text(const Options& options) {
  std::string text;
  for (const int size : options.dims) {
    text += (text.empty() ? "" : "x") + std::to_string(size);
  }
  return text.empty() ? "-" : text;
}

}  // namespace cnn::allreduce
