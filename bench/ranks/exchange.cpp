#include "bench/ranks/exchange.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "allreduce/calibrate.h"
#include "bench/flags/json.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/report/output_file.h"
#include "data/json/parse_json.h"
#include "layers/all_reduce.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using allreduce::Candidate;
using allreduce::Links;
using allreduce::LinkSpeeds;
using allreduce::Settings;
using allreduce::Topology;

constexpr double micro = 1e6, giga = 1e-9;
constexpr std::uint64_t max_ranks = 1 << 20;

int hosts_of(const Topology& topology) { return *std::ranges::max_element(topology.host_of) + 1; }

constexpr std::array<std::pair<const char*, double Links::*>, 6> link_members{
    {{"latency_seconds", &Links::latency},
     {"post_seconds", &Links::post},
     {"add_seconds_per_byte", &Links::add},
     {"rank_bytes_per_second", &Links::rank},
     {"host_bytes_per_second", &Links::host},
     {"memory_bytes_per_second", &Links::memory}}};

bool measures(const CommFlags& flags, const std::optional<LinkSpeeds>& known) {
  return flags.calibrate == LinkCalibration::force ||
         (flags.calibrate == LinkCalibration::automatic && !known);
}

std::string way_text(const Candidate& candidate) {
  const allreduce::Options& o = candidate.options;
  return fmt::format("{:<14} {:>9} {:>5} {:>6} {:>6}", candidate.algorithm->name,
                     allreduce::dims_text(o), o.rings, o.chunks, o.window);
}

using allreduce::Source;

constexpr const char* limits_key = "limits";
constexpr const char* remote_memory_key = "remote_memory_bytes_per_second";

Source source_in(const Json& json, const char* key) {
  const auto name = json.at(key).get<std::string>();
  for (const Source source : {Source::unknown, Source::assumed, Source::measured, Source::interface,
                              Source::flag, Source::derived}) {
    if (name == allreduce::source_name(source)) {
      return source;
    }
  }
  throw Error(fmt::format("{}: there is no source '{}'", key, name));
}

// Returns a number of ranks or machines. A conversion of other numbers to int would be undefined.
int count_in(const Json& value, std::string_view name) {
  check(value.is_number_unsigned() && value.get<std::uint64_t>() <= max_ranks,
        fmt::format("{} is {}; it is a whole number from 0 to {}", name, value.dump(), max_ranks));
  return value.get<int>();
}

allreduce::Limits limits_in(const Json& json, int ranks) {
  std::vector<int> machines;
  for (const Json& machine : json.at("machine_of_rank")) {
    machines.push_back(count_in(machine, "machine_of_rank"));
  }
  allreduce::Limits limits{.host_of = std::move(machines),
                           .line = json.at("line_bytes_per_second").get<double>(),
                           .line_source = source_in(json, "line_source"),
                           .hop = json.at("hop_seconds").get<double>()};
  check(ranks > 0 && limits.host_of.size() == static_cast<std::size_t>(ranks),
        "machine_of_rank: one number for each rank, from 0 on");
  for (const Json& row : json.at("memory")) {
    limits.memory.push_back(
        {row.at("bytes").get<double>(), row.at("bytes_per_second_of_rank").get<double>()});
    check(limits.memory.back().bytes_per_second > 0, "a speed of memory is 0");
  }
  check(std::ranges::is_sorted(limits.memory, {}, &allreduce::MemorySpeed::bytes),
        "memory: sizes must ascend");
  check(limits.line >= 0 && limits.hop >= 0, "a limit is negative");
  return limits;
}

Json json_of(const allreduce::Limits& limits) {
  Json memory = Json::array();
  for (const allreduce::MemorySpeed& speed : limits.memory) {
    memory.push_back(
        {{"bytes", speed.bytes}, {"bytes_per_second_of_rank", speed.bytes_per_second}});
  }
  return {{"machine_of_rank", limits.host_of},
          {"memory", std::move(memory)},
          {"line_bytes_per_second", limits.line},
          {"line_source", allreduce::source_name(limits.line_source)},
          {"hop_seconds", limits.hop}};
}

// Returns the lower bound for a plan's table: no prediction of its rows is below it.
allreduce::Bound plan_bound(const Settings& settings, std::size_t elements) {
  const double bytes = static_cast<double>(elements * size_of(settings.wire));
  const double of_links =
      allreduce::bound(settings.topology, bytes, settings.links, settings.peers_memory);
  allreduce::Bound bound = exchange_bound(settings, elements);
  if (bound.source == Source::unknown || bound.seconds > of_links) {
    bound = {of_links, "links", settings.limits.known() ? Source::derived : Source::assumed};
  }
  return bound;
}

// Returns "bucket 3" or "buckets 1-4".
std::string numbers_text(std::size_t first, std::size_t last) {
  return first == last ? fmt::format("bucket {}", first)
                       : fmt::format("buckets {}-{}", first, last);
}

}  // namespace

const allreduce::simd::Loops& loops_for(std::string_view instruction_sets) {
  const auto has = [&](std::string_view set) {
    return instruction_sets.find(set) != std::string_view::npos;
  };
  return has("avx512") ? allreduce::simd::avx512_loops()
         : has("avx2") ? allreduce::simd::avx2_loops()
                       : allreduce::simd::plain_loops();
}

MeasuredLinks read_links(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  try {
    check(stream.good(), "cannot be read");
    const auto json =
        data::parse_json<Json>(std::string(std::istreambuf_iterator<char>(stream), {}));
    MeasuredLinks found{
        count_in(json.at("ranks"), "ranks"), count_in(json.at("hosts"), "hosts"), {}};
    Links& links = found.speeds.links;
    for (const auto& [name, member] : link_members) {
      links.*member = json.at(name).get<double>();
      check(links.*member >= 0, fmt::format("{} is negative", name));
    }
    if (json.contains("meeting_seconds")) {
      links.barrier = json.at("meeting_seconds").get<double>();
      check(*links.barrier >= 0, "meeting_seconds is negative");
    }
    if (json.contains(remote_memory_key)) {
      links.remote_memory = json.at(remote_memory_key).get<double>();
      check(*links.remote_memory > 0, "a speed is 0");
    }
    check(links.rank > 0 && links.host > 0 && links.memory > 0, "a speed is 0");
    if (json.contains("links_beside_the_fastest")) {
      std::vector<double>& link = found.speeds.of_rank;
      link = json.at("links_beside_the_fastest").get<std::vector<double>>();
      check(link.size() == static_cast<std::size_t>(found.ranks) &&
                std::ranges::all_of(link, [](double factor) { return factor > 0 && factor <= 1; }),
            "links_beside_the_fastest: one number for each rank, above 0 and up to 1");
    }
    if (json.contains(limits_key)) {
      const Json& limits = json.at(limits_key);
      found.speeds.limits = limits_in(limits, found.ranks);
      found.speeds.sources = {
          .rank = source_in(limits, "rank_source"),
          .host = source_in(limits, "host_source"),
          .memory = source_in(limits, "memory_source"),
          .remote_memory = links.remote_memory ? Source::measured : Source::assumed};
    }
    return found;
  } catch (const std::exception& error) {
    throw Error(fmt::format("--comm_calibration_file={}: {}", file, error.what()));
  }
}

std::optional<LinkSpeeds> load_links(const std::string& file, const Topology& topology) {
  if (!std::filesystem::exists(file)) {
    return std::nullopt;
  }
  const MeasuredLinks found = read_links(file);
  const bool same = found.ranks == topology.ranks() && found.hosts == hosts_of(topology);
  const bool has_nodes = topology.numa_node_of.empty() || found.speeds.links.remote_memory;
  return same && has_nodes && found.speeds.limits.known() ? std::optional(found.speeds)
                                                          : std::nullopt;
}

void save_links(const std::string& file, const Topology& topology, const LinkSpeeds& speeds) {
  const Links& links = speeds.links;
  Json json{{"ranks", topology.ranks()}, {"hosts", hosts_of(topology)}};
  for (const auto& [name, member] : link_members) {
    json[name] = links.*member;
  }
  if (links.barrier) {
    json["meeting_seconds"] = *links.barrier;
  }
  if (links.remote_memory) {
    json[remote_memory_key] = *links.remote_memory;
  }
  if (!speeds.of_rank.empty()) {
    json["links_beside_the_fastest"] = speeds.of_rank;
  }
  if (speeds.limits.known()) {
    Json limits = json_of(speeds.limits);
    limits["rank_source"] = allreduce::source_name(speeds.sources.rank);
    limits["host_source"] = allreduce::source_name(speeds.sources.host);
    limits["memory_source"] = allreduce::source_name(speeds.sources.memory);
    json[limits_key] = std::move(limits);
  }
  OutputFile("--comm_calibration_file", file).write(json.dump(2) + "\n");
}

void calibrate(const CommFlags& flags, Settings& settings, allreduce::Transport& transport,
               const allreduce::simd::Loops& loops) {
  const bool first = transport.rank() == 0;
  std::optional<LinkSpeeds> known;
  if (first && flags.calibration_file && flags.calibrate != LinkCalibration::off) {
    known = load_links(*flags.calibration_file, settings.topology);
  }
  // Rank 0 decides whether all ranks measure: it then sends 0, an impossible bandwidth.
  LinkSpeeds mine = known.value_or(LinkSpeeds{.links = settings.links});
  if (measures(flags, known)) {
    mine.links.rank = 0;
  }
  LinkSpeeds speeds = links_of_rank_0(transport, settings.topology, mine);
  if (speeds.links.rank == 0) {
    speeds = measure_links(transport, loops, settings.topology, settings.links,
                           {.peers_memory = settings.peers_memory});
    if (first && flags.calibration_file) {
      save_links(*flags.calibration_file, settings.topology, speeds);
    }
  }
  settings.links = with_flags(speeds.links, flags);
  settings.topology.link = speeds.of_rank;
  settings.sources = with_flags(speeds.sources, flags);
  settings.limits = std::move(speeds.limits);
  if (flags.host_gbps && settings.limits.known()) {
    settings.limits.line = settings.links.host;
    settings.limits.line_source = Source::flag;
  }
}

std::string links_text(const Settings& settings) {
  const Links& links = settings.links;
  const std::vector<double>& of_rank = settings.topology.link;
  const auto speed = [](double bytes_per_second, Source source) {
    return fmt::format("{:.3g} GB/s ({})", giga * bytes_per_second, allreduce::source_name(source));
  };
  std::string text =
      fmt::format("latency {:.3g} us, post {:.3g} us, {} inside a host", micro * links.latency,
                  micro * links.post, speed(links.rank, settings.sources.rank));
  if (links.barrier) {
    text += fmt::format(", sums over memory {}, a meeting {:.3g} us",
                        speed(links.memory, settings.sources.memory), micro * *links.barrier);
    if (links.remote_memory && !settings.topology.numa_node_of.empty()) {
      text += fmt::format(", of other NUMA nodes {}",
                          speed(*links.remote_memory, settings.sources.remote_memory));
    }
  }
  if (!settings.topology.one_host() || !links.barrier) {
    text += fmt::format(", {} between hosts", speed(links.host, settings.sources.host));
  }
  if (!of_rank.empty()) {
    const auto slowest = std::ranges::min_element(of_rank);
    text +=
        fmt::format(", {:.3g} of that to the host of rank {}", *slowest, slowest - of_rank.begin());
  }
  return text;
}

std::string limits_text(const Settings& settings) {
  const allreduce::Limits& limits = settings.limits;
  if (!limits.known()) {
    return {};
  }
  constexpr double mega = 0x1p-20;
  const allreduce::MemorySpeed &largest = limits.memory.back(), &smallest = limits.memory.front();
  std::string text = fmt::format(
      "memory {:.3g} GB/s of each rank while all read and write {:.3g} MiB each, {:.3g} GB/s in "
      "caches (measured); a signal {:.3g} us (measured)",
      giga * largest.bytes_per_second, mega * largest.bytes, giga * smallest.bytes_per_second,
      micro * limits.hop);
  if (limits.line > 0) {
    text += fmt::format("; line of a host {:.3g} GB/s ({})", giga * limits.line,
                        allreduce::source_name(limits.line_source));
  }
  return text;
}

Json limits_json(const Settings& settings) {
  return settings.limits.known() ? json_of(settings.limits) : Json(nullptr);
}

allreduce::Bound exchange_bound(const Settings& settings, std::size_t elements) {
  return settings.limits.known() ? allreduce::lower_bound(settings.limits, elements, settings.wire)
                                 : allreduce::Bound{};
}

std::string distance_text(double seconds, const allreduce::Bound& bound) {
  constexpr double milli = 1e3;
  if (bound.source == Source::unknown || bound.seconds <= 0) {
    return {};
  }
  if (seconds < bound.seconds) {
    return fmt::format(
        "faster than its bound of {:.3f} ms: {} was measured too low, on a busy machine",
        milli * bound.seconds, bound.by);
  }
  return fmt::format("{:.2f} x the bound ({}, {})", seconds / bound.seconds, bound.by,
                     allreduce::source_name(bound.source));
}

std::vector<std::size_t> buckets_of(const StepPlan& plan) {
  std::vector<std::size_t> elements;
  for (const Node& node : plan.graph->nodes()) {
    const auto* const exchange = dynamic_cast<const layers::AllReduce*>(node.op.get());
    if (exchange == nullptr) {
      continue;
    }
    elements.resize(std::max(elements.size(), exchange->bucket + 1));
    for (const TensorId input : node.inputs) {
      elements[exchange->bucket] += plan.graph->info(input).desc.bytes() / sizeof(float);
    }
  }
  return elements;
}

std::size_t largest_bucket(const StepPlan& plan) {
  std::size_t largest = 0;
  for (const std::size_t elements : buckets_of(plan)) {
    largest = std::max(largest, elements);
  }
  return largest;
}

std::vector<std::string> exchange_plan_lines(const std::vector<std::size_t>& buckets,
                                             const Settings& settings) {
  std::vector<std::string> lines{"comm plan: links: " + links_text(settings)};
  if (const std::string limits = limits_text(settings); !limits.empty()) {
    lines.push_back("comm plan: limits: " + limits);
  }
  for (std::size_t first = 0, last = 0; first < buckets.size(); first = last + 1) {
    last = first;
    while (last + 1 < buckets.size() && buckets[last + 1] == buckets[first]) {
      ++last;
    }
    const allreduce::Bound bound = plan_bound(settings, buckets[first]);
    const double least = bound.seconds;
    lines.push_back(fmt::format("comm plan: {} of {}: {} elements, no less than {:.1f} us ({}, {})",
                                numbers_text(first, last), buckets.size(), buckets[first],
                                micro * least, bound.by, allreduce::source_name(bound.source)));
    lines.push_back(fmt::format("comm plan:   {:<14} {:>9} {:>5} {:>6} {:>6} {:>12} {:>8}",
                                "algorithm", "dims", "rings", "chunks", "window", "us", "x bound"));
    const char* mark = "*";
    for (const Candidate& candidate : allreduce::candidates_for(settings, buckets[first])) {
      lines.push_back(fmt::format("comm plan: {} {} {:>12.1f} {:>8.2f}", mark, way_text(candidate),
                                  micro * candidate.seconds,
                                  least > 0 ? candidate.seconds / least : 1.0));
      mark = " ";
    }
  }
  return lines;
}

}  // namespace cnn::bench
