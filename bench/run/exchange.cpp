#include "bench/run/exchange.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <utility>

#include "allreduce/calibrate.h"
#include "bench/flags/json.h"
#include "bench/run/exchange_flags.h"
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

// "bucket 3", "buckets 1-4".
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
    MeasuredLinks found{json.at("ranks").get<int>(), json.at("hosts").get<int>(), {}};
    Links& links = found.speeds.links;
    for (const auto& [name, member] : link_members) {
      links.*member = json.at(name).get<double>();
      check(links.*member >= 0, fmt::format("{} is negative", name));
    }
    if (json.contains("meeting_seconds")) {
      links.meeting = json.at("meeting_seconds").get<double>();
    }
    check(links.rank > 0 && links.host > 0 && links.memory > 0, "a speed is 0");
    if (json.contains("links_beside_the_fastest")) {
      std::vector<double>& link = found.speeds.of_rank;
      link = json.at("links_beside_the_fastest").get<std::vector<double>>();
      check(link.size() == static_cast<std::size_t>(found.ranks) &&
                std::ranges::all_of(link, [](double factor) { return factor > 0 && factor <= 1; }),
            "links_beside_the_fastest: one number for each rank, above 0 and up to 1");
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
  return same ? std::optional(found.speeds) : std::nullopt;
}

void save_links(const std::string& file, const Topology& topology, const LinkSpeeds& speeds) {
  const Links& links = speeds.links;
  Json json{{"ranks", topology.ranks()}, {"hosts", hosts_of(topology)}};
  for (const auto& [name, member] : link_members) {
    json[name] = links.*member;
  }
  if (links.meeting) {
    json["meeting_seconds"] = *links.meeting;
  }
  if (!speeds.of_rank.empty()) {
    json["links_beside_the_fastest"] = speeds.of_rank;
  }
  std::ofstream stream(file);
  stream << json.dump(2) << '\n' << std::flush;
  check(stream.good(), fmt::format("--comm_calibration_file={}: cannot be written", file));
}

void calibrate(const CommFlags& flags, Settings& settings, allreduce::Transport& transport,
               const allreduce::simd::Loops& loops) {
  const bool first = transport.rank() == 0;
  std::optional<LinkSpeeds> known;
  if (first && flags.calibration_file && flags.calibrate != LinkCalibration::off) {
    known = load_links(*flags.calibration_file, settings.topology);
  }
  // Rank 0 says whether all measure: a link that cannot be stands for it.
  LinkSpeeds mine = known.value_or(LinkSpeeds{settings.links, {}});
  if (measures(flags, known)) {
    mine.links.rank = 0;
  }
  LinkSpeeds speeds = links_of_first(transport, loops, settings.topology, mine);
  if (speeds.links.rank == 0) {
    speeds = measure_links(transport, loops, settings.topology, settings.links,
                           {.peers_memory = settings.peers_memory});
    if (first && flags.calibration_file) {
      save_links(*flags.calibration_file, settings.topology, speeds);
    }
  }
  settings.links = with_flags(speeds.links, flags);
  settings.topology.link = speeds.of_rank;
}

std::string links_text(const Settings& settings) {
  const Links& links = settings.links;
  const std::vector<double>& of_rank = settings.topology.link;
  std::string text = fmt::format("latency {:.3g} us, post {:.3g} us, {:.3g} GB/s inside a host",
                                 micro * links.latency, micro * links.post, giga * links.rank);
  if (links.meeting) {
    text += fmt::format(", sums over memory {:.3g} GB/s, a meeting {:.3g} us", giga * links.memory,
                        micro * *links.meeting);
  }
  if (!settings.topology.one_host() || !links.meeting) {
    text += fmt::format(", {:.3g} GB/s between hosts", giga * links.host);
  }
  if (!of_rank.empty()) {
    const auto slowest = std::ranges::min_element(of_rank);
    text +=
        fmt::format(", {:.3g} of that to the host of rank {}", *slowest, slowest - of_rank.begin());
  }
  return text;
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
  for (std::size_t first = 0, last = 0; first < buckets.size(); first = last + 1) {
    last = first;
    while (last + 1 < buckets.size() && buckets[last + 1] == buckets[first]) {
      ++last;
    }
    const double bytes = static_cast<double>(buckets[first] * size_of(settings.wire));
    const double least =
        allreduce::bound(settings.topology, bytes, settings.links, settings.peers_memory);
    lines.push_back(fmt::format("comm plan: {} of {}: {} elements, no less than {:.1f} us",
                                numbers_text(first, last), buckets.size(), buckets[first],
                                micro * least));
    lines.push_back(fmt::format("comm plan:   {:<14} {:>9} {:>5} {:>6} {:>6} {:>12} {:>8}",
                                "algorithm", "dims", "rings", "chunks", "window", "us", "x bound"));
    const char* mark = "*";
    for (const Candidate& candidate : allreduce::ways_of(settings, buckets[first])) {
      lines.push_back(fmt::format("comm plan: {} {} {:>12.1f} {:>8.2f}", mark, way_text(candidate),
                                  micro * candidate.seconds,
                                  least > 0 ? candidate.seconds / least : 1.0));
      mark = " ";
    }
  }
  return lines;
}

}  // namespace cnn::bench
