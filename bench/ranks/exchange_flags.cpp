#include "bench/ranks/exchange_flags.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "allreduce/rank_order.h"
#include "bench/flags/ddl_options.h"
#include "bench/flags/fault_spec.h"
#include "bench/flags/reduce_spec.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

// Assumed links: messages within a process are copies; sums over peers' memory have no messages.
// Links between hosts have 10 Gbit/s, and memory of another NUMA node the speed of a socket link.
constexpr allreduce::Links within_host{
    .latency = 5e-7, .rank = 4e9, .memory = 20e9, .remote_memory = 10e9};
constexpr allreduce::Links between_hosts{
    .latency = 2e-5, .rank = 4e9, .host = 1.2e9, .memory = 20e9, .remote_memory = 10e9};

// The ranks and their hosts.
struct RankCounts {
  int ranks = 1, hosts = 1;

  bool one_host() const { return hosts == 1; }
  std::vector<int> dims() const { return {ranks / hosts, hosts}; }
  bool is_grid() const { return hosts > 1 && hosts < ranks && ranks % hosts == 0; }
};

RankCounts counts_of(const allreduce::Topology& topology) {
  return {topology.ranks(), *std::ranges::max_element(topology.host_of) + 1};
}

struct AlgorithmChoice {
  std::string_view algorithm;  // of the catalog; empty: the fastest
  bool sides = false;          // shards are rings or owners instead of chunks
};

// x/y: algorithm x within a host, then y between hosts.
AlgorithmChoice two_levels(std::string_view inside, std::string_view across,
                           const RankCounts& counts) {
  if (counts.one_host()) {
    return inside == "nccl" ? AlgorithmChoice{} : AlgorithmChoice{"shuffle", true};
  }
  if (across == "rechd") {
    return {"halving"};
  }
  const bool rings = across == "xring";
  if (counts.is_grid()) {
    return {rings ? "grid_of_rings" : "grid_of_direct"};
  }
  return {rings ? "multi_ring" : "direct", rings};
}

// Returns the algorithm for names without further parameters; empty: the fastest.
std::string_view algorithm_of(std::string_view name) {
  using Row = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Row, 5> rows{{{"rd", "doubling"},
                                     {"hd", "halving"},
                                     {"shm", "shared"},
                                     {"tree", "tree"},
                                     {"weighted", "weighted"}}};
  const auto* const row = std::ranges::find(rows, name, &Row::first);
  return row == rows.end() ? std::string_view() : row->second;
}

AlgorithmChoice chosen_for(const AlgorithmSpec& spec, const RankCounts& counts) {
  const std::string_view name = spec.name;
  if (const auto slash = name.find('/'); slash != std::string_view::npos) {
    return two_levels(name.substr(0, slash), name.substr(slash + 1), counts);
  }
  if (name == "ring" || name == "xring" || name == "collective") {
    return !spec.dims.empty() ? AlgorithmChoice{"grid_of_rings"}
           : spec.shards > 1  ? AlgorithmChoice{"multi_ring", true}
                              : AlgorithmChoice{"ring"};
  }
  if (name == "pscpu" || name == "psgpu") {
    return {"shuffle", true};
  }
  if (name == "shm" && counts.is_grid()) {
    return {"shared_direct"};
  }
  if (name == "direct") {
    return {spec.dims.empty() ? "direct" : "grid_of_direct"};
  }
  return {algorithm_of(name)};
}

void note_substitutes(const AlgorithmSpec& spec, const RankCounts& counts,
                      std::vector<std::string>& notes) {
  if (spec.name.starts_with("nccl")) {
    notes.push_back(
        fmt::format("--all_reduce_spec: {}: NCCL sums on GPUs only; {} takes its place", spec.name,
                    counts.one_host() || spec.name == "nccl" ? "the fastest algorithm"
                                                             : "the same exchange by messages"));
  } else if (spec.name.find('/') != std::string::npos && counts.one_host()) {
    notes.push_back(fmt::format(
        "--all_reduce_spec: {}: all ranks are on one host, so its second half has nothing to do",
        spec.name));
  }
}

// Shards are parallel parts: rings, owners of sums, otherwise chunks.
allreduce::Rule rule_of(const AlgorithmSpec& spec, const RankCounts& counts) {
  constexpr int window = 8;
  const AlgorithmChoice chosen = chosen_for(spec, counts);
  allreduce::Rule rule;
  if (spec.most) {
    rule.most = static_cast<std::size_t>(*spec.most);
  }
  if (chosen.algorithm.empty()) {
    check((spec.shards == 1 && spec.chunks == 0) || spec.name != "auto",
          "--all_reduce_spec: auto chooses shards and chunks itself");
    return rule;
  }
  rule.algorithm = &allreduce::find(chosen.algorithm);
  allreduce::Options& options = rule.options;
  options.chunks = spec.chunks > 0 ? spec.chunks : chosen.sides ? 1 : spec.shards;
  options.window =
      !chosen.sides && spec.shards > 1 ? spec.shards : std::min(options.chunks, window);
  if (chosen.algorithm == "multi_ring") {
    options.rings = spec.shards;
  } else if (chosen.algorithm == "shuffle") {
    options.owners = spec.shards;
  }
  if (rule.algorithm->grid) {
    options.dims = spec.dims.empty() ? counts.dims() : spec.dims;
  }
  return rule;
}

std::vector<allreduce::Rule> rules_of(const CommFlags& flags, const RankCounts& counts,
                                      std::vector<std::string>& notes) {
  std::vector<allreduce::Rule> rules;
  if (flags.spec) {
    for (const AlgorithmSpec& spec : parse_reduce_spec(*flags.spec)) {
      note_substitutes(spec, counts, notes);
      rules.push_back(rule_of(spec, counts));
    }
  } else if (flags.hierarchical_copy) {
    check(counts.ranks % 2 == 0,
          fmt::format("--hierarchical_copy has two halves of devices, but there are {}",
                      counts.ranks));
    if (counts.ranks > 2) {  // halves of one rank have no inner work
      rules.push_back({.algorithm = &allreduce::find("grid_of_direct"),
                       .options = {.dims = {counts.ranks / 2, 2}}});
    } else {
      rules.push_back({.algorithm = &allreduce::find("direct")});
    }
  }
  return rules;
}

// Chunks overlap one dimension with another.
std::vector<allreduce::Rule> ddl_rules(const std::string& text, const RankCounts& counts,
                                       std::vector<std::string>& notes) {
  const DdlMode mode = read_ddl_options(text, counts.ranks, notes);
  const bool rings = mode.letter == 'r' || mode.letter == 'n';
  if (!rings && mode.letter != 'c') {
    if (mode.dims.size() > 1) {
      notes.push_back(fmt::format(
          "--ddl_options: -mode {} takes the fastest way by measured links, whatever dimensions "
          "it names; r and c keep to them",
          mode.letter));
    }
    return {};
  }
  if (mode.dims.size() < 2) {
    return {{.algorithm = &allreduce::find(rings ? "ring" : "direct")}};
  }
  constexpr int chunks = 4;
  return {{.algorithm = &allreduce::find(rings ? "grid_of_rings" : "grid_of_direct"),
           .options = {.dims = mode.dims, .chunks = chunks, .window = chunks}}};
}

// A run that computes in 16 bits sends 16 bits; inside a host, ranks send nothing that sums can
// read in place.
allreduce::Wire wire_of(const Config& config, const RankCounts& counts) {
  if (config.comm.wire) {
    return *config.comm.wire;
  }
  const bool compact = config.comm.compact && !counts.one_host();
  const Precision computes = config.precision.type;
  return compact && computes == Precision::bf16   ? allreduce::Wire::bf16
         : compact && computes == Precision::fp16 ? allreduce::Wire::f16
                                                  : allreduce::Wire::f32;
}

// If no flag requires messages, ranks of one host sum in f32 in place, which is faster than any
// message and more exact.
void drop_wire_in_memory(const RankCounts& counts, Exchange& exchange) {
  const allreduce::Settings& settings = exchange.settings;
  const auto names_one = [](const allreduce::Rule& rule) { return rule.algorithm != nullptr; };
  const bool by_messages = std::ranges::any_of(settings.rules, names_one) ||
                           settings.shape.dims.size() > 1 || settings.shape.rings > 1 ||
                           !settings.peers_memory;
  if (settings.wire == allreduce::Wire::f32 || !counts.one_host() || by_messages) {
    return;
  }
  const allreduce::Wire request = std::exchange(exchange.settings.wire, allreduce::Wire::f32);
  exchange.notes.push_back(
      fmt::format("--comm_wire={} has no effect: on one host gradients are summed where they lie; "
                  "--comm_transport=mpi sends them",
                  word_of(request)));
}

std::optional<allreduce::Fault> fault_of(const CommFlags& flags, const RankCounts& counts) {
  if (!flags.fault || !flags.simulate_ranks.empty() || flips_a_bit(flags.fault)) {
    return std::nullopt;
  }
  constexpr std::array<std::pair<std::string_view, allreduce::Fault::Kind>, 5> kinds{
      {{"exit", allreduce::Fault::Kind::exit},
       {"kill", allreduce::Fault::Kind::kill},
       {"stop", allreduce::Fault::Kind::stop},
       {"delay", allreduce::Fault::Kind::delay},
       {"corrupt", allreduce::Fault::Kind::corrupt}}};
  const FaultSpec spec = parse_fault_spec(*flags.fault);
  check(spec.rank < counts.ranks,
        fmt::format("--comm_fault={}: there are {} ranks, from 0 on", *flags.fault, counts.ranks));
  allreduce::Fault fault{.rank = spec.rank,
                         .bucket = static_cast<std::size_t>(spec.bucket),
                         .step = static_cast<std::size_t>(spec.step),
                         .after = static_cast<std::size_t>(spec.after),
                         .delay = std::chrono::milliseconds(spec.milliseconds)};
  for (const auto& [name, kind] : kinds) {
    fault.kind = name == spec.what ? kind : fault.kind;
  }
  return fault;
}

allreduce::Shape shape_of(const CommFlags& flags, const RankCounts& counts) {
  allreduce::Shape shape{.rings = flags.rings,
                         .chunk_bytes = static_cast<std::size_t>(flags.chunk_kb) << 10U,
                         .window = flags.window};
  if (flags.topology) {
    shape.dims = parse_dims(*flags.topology);
    const std::int64_t ranks = allreduce::ranks_of_grid(shape.dims);
    check(ranks == counts.ranks,
          fmt::format("--comm_topology={} is a grid of {} ranks, but there are {}", *flags.topology,
                      ranks, counts.ranks));
  }
  return shape;
}

// Returns at most 31 years: clocks count nanoseconds in 64 bits, and a longer time would overflow
// to one in the past.
std::chrono::milliseconds milliseconds(double seconds) {
  constexpr double thousand = 1000, most = 1e9;
  return std::chrono::milliseconds(static_cast<std::int64_t>(thousand * std::min(seconds, most)));
}

allreduce::StallWarning warning_of(const CommFlags& flags) {
  allreduce::StallWarning warning{.after = milliseconds(flags.stall_warn_s)};
  if (flags.stall_warn_s > 0) {
    warning.say = [](const std::string& what) { fmt::print(stderr, "comm: {}\n", what); };
  }
  return warning;
}

}  // namespace

bool exchanges_gradients(const Config& config) {
  return config.variable_update != VariableUpdate::independent && !config.mode.forward_only &&
         !config.mode.eval;
}

layers::BucketSizes bucket_sizes(const CommFlags& flags) {
  if (!flags.overlap || flags.repacking > 0) {
    return layers::one_bucket();
  }
  layers::BucketSizes sizes{.first = static_cast<std::size_t>(flags.first_bucket_kb) << 10U,
                            .others = static_cast<std::size_t>(flags.bucket_mb) << 20U,
                            .last = static_cast<std::size_t>(flags.last_bucket_kb) << 10U};
  if (flags.spec && flags.small_bytes > 0 && flags.small_group > 0) {
    sizes.small = static_cast<std::size_t>(flags.small_bytes);
    sizes.joined = static_cast<std::size_t>(flags.small_group);
  }
  return sizes;
}

allreduce::Links with_flags(allreduce::Links links, const CommFlags& flags) {
  constexpr double giga = 1e9, micro = 1e-6;
  links.host = flags.host_gbps ? giga * *flags.host_gbps : links.host;
  links.rank = flags.rank_gbps ? giga * *flags.rank_gbps : links.rank;
  links.remote_memory = flags.numa_gbps ? giga * *flags.numa_gbps : links.remote_memory;
  links.latency = flags.latency_us ? micro * *flags.latency_us : links.latency;
  return links;
}

allreduce::LinkSources with_flags(allreduce::LinkSources sources, const CommFlags& flags) {
  sources.host = flags.host_gbps ? allreduce::Source::flag : sources.host;
  sources.rank = flags.rank_gbps ? allreduce::Source::flag : sources.rank;
  sources.remote_memory = flags.numa_gbps ? allreduce::Source::flag : sources.remote_memory;
  return sources;
}

allreduce::WorldOptions world_options(const CommFlags& flags) {
  return {.wait_timeout = milliseconds(flags.stall_abort_s),
          .heartbeat_timeout = milliseconds(flags.peer_timeout_s),
          .heartbeat_interval = std::chrono::milliseconds(flags.heartbeat_ms),
          .start = {.timeout = milliseconds(flags.start_timeout_s),
                    .flag = fmt::format("--comm_start_timeout_s={}", flags.start_timeout_s)}};
}

allreduce::SharedMemoryOptions shared_memory_options(const CommFlags& flags,
                                                     std::size_t segment_bytes) {
  return {.segment_bytes = segment_bytes,
          .wait_timeout = milliseconds(flags.stall_abort_s),
          .heartbeat_timeout = milliseconds(flags.peer_timeout_s)};
}

Exchange make_exchange(const Config& config, const allreduce::Topology& topology,
                       bool peers_memory) {
  const CommFlags& flags = config.comm;
  const RankCounts counts = counts_of(topology);
  Exchange exchange{
      .settings = {.topology = topology,
                   .order = flags.order,
                   .wire = wire_of(config, counts),
                   .peers_memory = peers_memory,
                   .links = with_flags(counts.one_host() ? within_host : between_hosts, flags),
                   .sources = with_flags(allreduce::LinkSources{}, flags),
                   .pieces = flags.repacking,
                   .shape = shape_of(flags, counts),
                   .compares = flags.check == CommCheck::hash,
                   .proves = flags.check == CommCheck::exact,
                   .fault = fault_of(flags, counts),
                   .stall = warning_of(flags)}};
  exchange.settings.rules = config.variable_update == VariableUpdate::ddl && flags.ddl_options
                                ? ddl_rules(*flags.ddl_options, counts, exchange.notes)
                                : rules_of(flags, counts, exchange.notes);
  drop_wire_in_memory(counts, exchange);
  constexpr int exact_in_bf16 = 256;  // bf16 counts ones exactly up to here
  check(flags.check != CommCheck::exact || exchange.settings.wire != allreduce::Wire::bf16 ||
            topology.ranks() <= exact_in_bf16,
        fmt::format("--comm_check=exact: bf16 holds sums over {} ranks exactly, and there are {}",
                    exact_in_bf16, topology.ranks()));
  if (flags.order != allreduce::Order::fast && !hosts_are_contiguous(topology)) {
    exchange.notes.push_back(fmt::format(
        "--comm_order={}: sums keep to the order of ranks, which are not numbered host by host, so "
        "that more than needed goes between hosts: start mpirun with --map-by slot, or use "
        "--comm_order=fast",
        word_of(flags.order)));
  }
  if (flags.order != allreduce::Order::fast && hosts_are_contiguous(topology) &&
      !nodes_are_contiguous(topology)) {
    exchange.notes.push_back(fmt::format(
        "--comm_order={}: sums keep to the order of ranks, which are not numbered by NUMA node, so "
        "that more than needed is read from other nodes: start mpirun with --map-by slot, or use "
        "--comm_order=fast",
        word_of(flags.order)));
  }
  if (config.precision.type == Precision::fp16 || config.precision.type == Precision::bf16) {
    if (counts.one_host() && !flags.compact) {
      exchange.notes.emplace_back(
          "--compact_gradient_transfer has no effect: on one host gradients are summed where they "
          "lie");
    }
  }
  return exchange;
}

}  // namespace cnn::bench
