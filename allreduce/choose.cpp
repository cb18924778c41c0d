#include "allreduce/choose.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "allreduce/estimate.h"
#include "allreduce/placement.h"
#include "allreduce/symmetry.h"
#include "runtime/error.h"

namespace cnn::allreduce {
namespace {

constexpr int widest = 16;               // a dimension of more members is divided
constexpr int most_flat = 64;            // ranks that all talk to all
constexpr int most_in_window = 8;        // of the pieces that are asked for
constexpr std::size_t small = 16384;     // elements from which chunks are worth their messages
constexpr int few_ranks = 16;            // for whom every way is simulated
constexpr double most_messages = 1.2e6;  // that are simulated
constexpr double most_messages_of_many = 1.5e5;  // of ranks without a symmetry

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
int ranks_each(const Topology& topology) { return ranks_of_each_host(topology).value_or(1); }

// The host's dimension stands first: what leaves it has shrunk by then. Where its ranks have
// several NUMA nodes it may be two dimensions, that of a node first.
std::vector<std::vector<int>> grids(const Topology& topology) {
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

// How many chunks, and how many of them at once: windows that keep links busy without the first
// chunk waiting behind all others.
std::vector<std::pair<int, int>> cuts(const Algorithm& row, const Topology& topology,
                                      const Wish& wish) {
  std::vector<std::pair<int, int>> chunks{{1, 1}};
  if (wish.pieces > 0) {
    chunks = {{wish.pieces, std::min(wish.pieces, most_in_window)}};
  } else if (wish.shape.chunk_bytes > 0) {
    const std::size_t bytes = wish.elements * size_of(wish.wire);
    const std::size_t whole = (bytes + wish.shape.chunk_bytes - 1) / wish.shape.chunk_bytes;
    if (whole > wish.channels) {
      return {};
    }
    const auto count = static_cast<int>(std::max<std::size_t>(whole, 1));
    chunks = {{count, std::min(count, most_in_window)}};
  } else if (wish.elements >= small && (!row.peers_memory || row.grid || row.serial)) {
    const bool many = topology.ranks() > most_flat;  // long ways: more under way at once
    chunks.insert(chunks.end(), {{2, 2}, {16, many ? 4 : 3}});
    if (!many) {
      chunks.insert(chunks.end(), {{4, 4}, {32, 6}});
    }
  }
  for (auto& [count, window] : chunks) {
    window = wish.shape.window > 0 ? std::min(wish.shape.window, count) : window;
  }
  return chunks;
}

std::vector<Options> ways(const Algorithm& row, const Topology& topology, const Wish& wish) {
  std::vector<Options> all;
  std::vector<std::vector<int>> dims(1, wish.shape.dims);
  if (!row.grid) {
    dims = {{}};
  } else if (wish.shape.dims.empty()) {
    dims = grids(topology);
  }
  for (const std::vector<int>& of_grid : dims) {
    for (const auto& [count, window] : cuts(row, topology, wish)) {
      all.push_back({wish.order, wish.wire, of_grid, 1, count, window});
    }
  }
  if (row.name == "multi_ring") {
    const int rings = wish.shape.rings > 0 ? wish.shape.rings : std::min(8, ranks_each(topology));
    for (Options& options : all) {
      options.rings = rings;
      options.window *= rings;  // all of them advance together
    }
  }
  return all;
}

bool worth_a_look(const Algorithm& row, const Topology& topology, const Wish& wish) {
  const bool many_rings = row.name == "multi_ring";
  if ((!wish.shape.dims.empty() && row.grid != (wish.shape.dims.size() > 1)) ||
      (wish.shape.rings > 0 && many_rings != (wish.shape.rings > 1))) {
    return false;
  }
  if (row.peers_memory) {
    const bool by_node = row.name == "shared_by_node";
    return wish.peers_memory && (row.grid || topology.one_host()) &&
           (!by_node || ranks_by_node(topology).size() > 1);
  }
  if (row.name == "shuffle") {  // never faster than direct: for who asks for it
    return false;
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

// Where sums have an order, its bits depend on the dimensions unless all of them are powers of two
// in a tree: then one cut is for all links and sizes. Hosts are one dimension or a few of about the
// same size, ranks of a host another; empty: all ranks are one.
std::vector<int> dims_for_order(const Topology& topology) {
  const int inside = ranks_each(topology);
  if (topology.ranks() == inside || (inside == 1 && topology.ranks() <= widest)) {
    return {};
  }
  const std::vector<std::vector<int>> all = grids(topology);
  const auto worse = [](const std::vector<int>& a, const std::vector<int>& b) {
    return std::pair(a.size(), a.back()) < std::pair(b.size(), b.back());
  };
  return all.empty() ? std::vector<int>() : *std::ranges::min_element(all, worse);
}

// In the memory of one host sums go in the order of positions at no cost: every run has the same
// bits, whatever it measures, and threads those of processes.
bool keeps_bits(const Candidate& way, const Topology& topology, const Wish& wish) {
  if (!wish.shape.dims.empty() || wish.shape.rings > 0) {
    return true;  // they are the same in every run
  }
  if (wish.order == Order::fast) {
    return !(wish.peers_memory && topology.one_host()) ||
           ((way.algorithm->ordered || way.algorithm->serial) && !way.algorithm->grid);
  }
  const bool pairs =
      wish.order == Order::tree && std::has_single_bit(static_cast<unsigned>(topology.ranks()));
  return pairs || way.options.dims == dims_for_order(topology);
}

std::vector<Candidate> ways_of_catalog(const Topology& topology, const Wish& wish) {
  std::vector<Candidate> all;
  for (const Algorithm& row : catalog()) {
    if (!worth_a_look(row, topology, wish)) {
      continue;
    }
    for (const Options& options : ways(row, topology, wish)) {
      if (keeps_bits({&row, options, 0}, topology, wish) && can(row, topology, options)) {
        all.push_back({&row, options, 0});
      }
    }
  }
  return all;
}

void keep_the_fastest(std::vector<Candidate>& all, const Topology& topology, const Wish& wish,
                      const Links& links) {
  for (Candidate& candidate : all) {
    candidate.seconds =
        estimate(*candidate.algorithm, candidate.options, topology, wish.elements, links).seconds;
  }
  const int ranks = topology.ranks();
  const std::size_t kept = ranks <= most_flat ? 8 : ranks <= 4 * most_flat ? 2 : 1;
  std::ranges::stable_sort(all, {}, &Candidate::seconds);
  all.resize(std::min(all.size(), kept));
}

// That a rule names, with what holds for all.
Candidate way_of_rule(const Rule& rule, const Wish& wish) {
  Candidate way{rule.algorithm, rule.options, 0};
  way.options.order = wish.order;
  way.options.wire = wish.wire;
  if (wish.pieces > 0) {
    way.options.chunks = wish.pieces;
    way.options.window = std::min(wish.pieces, most_in_window);
  }
  return way;
}

// Empty buffers have as many chunks as others.
bool has_channels(const Candidate& way, const Topology& topology, const Wish& wish) {
  return make_plan(*way.algorithm, topology, 0, 0, way.options).chunks.size() <= wish.channels;
}

// Simulates the plans of one host, cut into equal slices of the same total size.
double simulate_by_symmetry(const Candidate& candidate, const Topology& topology,
                            std::size_t elements, const Links& links, const Symmetry& symmetry) {
  const auto unit = static_cast<std::size_t>(topology.ranks()) *
                    static_cast<std::size_t>(candidate.options.chunks) *
                    static_cast<std::size_t>(candidate.options.rings);
  const std::size_t rounded = (elements + unit - 1) / unit * unit;
  std::vector<RankPlan> plans;
  plans.reserve(static_cast<std::size_t>(symmetry.representatives()));
  for (int rank = 0; rank < symmetry.representatives(); ++rank) {
    plans.push_back(make_plan(*candidate.algorithm, topology, rank, rounded, candidate.options));
  }
  return simulate(plans, topology, links, symmetry,
                  static_cast<double>(elements) / static_cast<double>(rounded));
}

// Simulates few ranks message by message, and many by one host's plans where hosts are alike;
// else by formulas where messages are too many.
double seconds_of(const Candidate& candidate, const Topology& topology, std::size_t elements,
                  const Links& links) {
  const Algorithm& row = *candidate.algorithm;
  const int ranks = topology.ranks();
  const Estimate rough = estimate(row, candidate.options, topology, elements, links);
  if (ranks > few_ranks && elements >= static_cast<std::size_t>(ranks)) {
    const std::optional<Symmetry> symmetry = symmetry_of(row, topology, candidate.options);
    const double part = symmetry ? 1.0 * symmetry->representatives() / ranks : 1.0;
    if (symmetry && rough.messages * part <= most_messages) {
      return simulate_by_symmetry(candidate, topology, elements, links, *symmetry);
    }
  }
  const double most = ranks <= 4 * most_flat ? most_messages : most_messages_of_many;
  return ranks <= few_ranks || rough.messages <= most
             ? simulate(plans_of_all(row, topology, elements, candidate.options), topology, links)
             : rough.seconds;
}

// Gives all of them their seconds; those that need too many channels are left out.
void simulate_all(std::vector<Candidate>& all, const Topology& topology, const Wish& wish,
                  const Links& links) {
  std::vector<Candidate> fitting;
  for (Candidate& candidate : all) {
    if (has_channels(candidate, topology, wish)) {
      candidate.seconds = seconds_of(candidate, topology, wish.elements, links);
      fitting.push_back(std::move(candidate));
    }
  }
  all = std::move(fitting);
}

std::string why_none(const Topology& topology, const Wish& wish) {
  const Shape& shape = wish.shape;
  const std::string channels = std::to_string(wish.channels);
  if (wish.pieces > 0) {
    return "no all-reduce in " + std::to_string(wish.pieces) +
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

Wish wish_of(const Settings& settings, std::size_t elements, std::size_t channels) {
  return {elements, settings.order,  settings.wire, settings.peers_memory,
          channels, settings.pieces, settings.shape};
}

}  // namespace

std::vector<Candidate> candidates(const Topology& topology, const Wish& wish, const Links& links) {
  std::vector<Candidate> all = ways_of_catalog(topology, wish);
  if (topology.ranks() > few_ranks) {
    keep_the_fastest(all, topology, wish, links);
  }
  simulate_all(all, topology, wish, links);
  check(!all.empty(), why_none(topology, wish));
  std::ranges::stable_sort(all, {}, &Candidate::seconds);
  return all;
}

std::vector<Candidate> ways_of(const Settings& settings, std::size_t elements,
                               std::size_t channels) {
  const Wish wish = wish_of(settings, elements, channels);
  const auto rule =
      std::ranges::find_if(settings.rules, [&](const Rule& r) { return elements <= r.most; });
  if (rule == settings.rules.end() || rule->algorithm == nullptr) {
    return candidates(settings.topology, wish, settings.links);
  }
  const Candidate fixed = way_of_rule(*rule, wish);
  make_plan(*fixed.algorithm, settings.topology, 0, 0, fixed.options);  // throws if it cannot be
  std::vector<Candidate> all{fixed};
  simulate_all(all, settings.topology, wish, settings.links);
  check(!all.empty(), "all-reduce '" + std::string(fixed.algorithm->name) + "' in " +
                          std::to_string(fixed.options.chunks) +
                          " chunks needs more channels than ranks have, " +
                          std::to_string(channels) + "; ask for fewer");
  return all;
}

bool can_reduce(const Settings& settings, std::size_t elements, std::size_t channels) {
  const Wish wish = wish_of(settings, elements, channels);
  const auto some_way = [&] {
    return std::ranges::any_of(ways_of_catalog(settings.topology, wish), [&](const auto& way) {
      return has_channels(way, settings.topology, wish);
    });
  };
  const auto follows = [&](const Rule& rule) {
    if (rule.algorithm == nullptr) {
      return some_way();
    }
    const Candidate way = way_of_rule(rule, wish);
    return can(*way.algorithm, settings.topology, way.options) &&
           has_channels(way, settings.topology, wish);
  };
  const bool all_named = !settings.rules.empty() &&
                         settings.rules.back().most == std::numeric_limits<std::size_t>::max();
  return std::ranges::all_of(settings.rules, follows) && (all_named || some_way());
}

std::string dims_text(const Options& options) {
  std::string text;
  for (const int size : options.dims) {
    text += (text.empty() ? "" : "x") + std::to_string(size);
  }
  return text.empty() ? "-" : text;
}

}  // namespace cnn::allreduce
