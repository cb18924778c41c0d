#include "bench/ranks/rank_lanes.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "bench/ranks/peers.h"
#include "data/json/parse_json.h"
#include "runtime/median.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

constexpr std::size_t clock_readings = 10;

Json event_of(const Json& span, std::size_t rank, std::size_t lane) {
  constexpr double micro = 1e6;  // the unit of the format
  const auto start = span["start"].get<double>(), end = span["end"].get<double>();
  return {{"name", span["name"]}, {"ph", "X"},           {"pid", rank},
          {"tid", lane},          {"ts", micro * start}, {"dur", micro * (end - start)}};
}

Json name_event(const char* what, const std::string& name, std::size_t rank, std::size_t lane) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", lane}, {"args", {{"name", name}}}};
}

double mean_of(const Json& ranks, const char* key) {
  double sum = 0;
  for (const Json& rank : ranks) {
    sum += rank[key].is_null() ? std::numeric_limits<double>::quiet_NaN() : rank[key].get<double>();
  }
  return sum / static_cast<double>(ranks.size());
}

}  // namespace

LanesMessage message_of(const RankLanes& rank) {
  return {.start = rank.start, .lanes = rank.lanes.dump()};
}

RankLanes lanes_of(const LanesMessage& message) {
  return {.start = message.start, .lanes = data::parse_json<Json>(message.lanes)};
}

double seconds_of(std::chrono::steady_clock::time_point moment) {
  return in_seconds(moment.time_since_epoch());
}

std::vector<double> clocks_ahead(Peers& peers) {
  const std::vector<allreduce::RankPlacement>& placements = peers.placements();
  std::vector<double> ahead(placements.size());
  if (std::ranges::all_of(placements, [&](const auto& placement) {
        return placement.kernel == placements[0].kernel;
      })) {
    return ahead;
  }
  std::vector<std::vector<double>> differences(placements.size());
  for (std::size_t reading = 0; reading < clock_readings; ++reading) {
    peers.barrier();
    const double mine = seconds_of(std::chrono::steady_clock::now());
    const std::vector<double> all = peers.all_gather(mine);
    for (std::size_t rank = 0; rank < placements.size(); ++rank) {
      differences[rank].push_back(all[rank] - all.front());
    }
  }
  for (std::size_t rank = 0; rank < placements.size(); ++rank) {
    ahead[rank] = placements[rank].kernel == placements[0].kernel ? 0 : median(differences[rank]);
  }
  return ahead;
}

Json by_one_clock(std::vector<RankLanes> ranks) {
  double first = std::numeric_limits<double>::infinity();
  for (const RankLanes& rank : ranks) {
    first = std::min(first, rank.start);
  }
  Json items = Json::array();
  for (RankLanes& rank : ranks) {
    const double shift = rank.start - first;
    for (Json& lane : rank.lanes) {
      for (Json& span : lane["spans"]) {
        span["start"] = shift + span["start"].get<double>();
        span["end"] = shift + span["end"].get<double>();
      }
    }
    items.push_back(
        {{"rank", items.size()}, {"host", rank.host}, {"lanes", std::move(rank.lanes)}});
  }
  return items;
}

std::string chrome_trace_of_ranks(const Json& ranks) {
  Json events = Json::array();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto host = ranks[rank]["host"].get<std::string>();
    events.push_back(name_event("process_name", fmt::format("rank {} on {}", rank, host), rank, 0));
    const Json& lanes = ranks[rank]["lanes"];
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      events.push_back(
          name_event("thread_name", lanes[lane]["lane"].get<std::string>(), rank, lane));
      for (const Json& span : lanes[lane]["spans"]) {
        events.push_back(event_of(span, rank, lane));
      }
    }
  }
  return Json{{"traceEvents", std::move(events)}}.dump() + "\n";
}

std::string exchange_line(const Json& ranks, std::int64_t steps) {
  const double milliseconds = 1e3 / static_cast<double>(std::max<std::int64_t>(steps, 1));
  const double all = mean_of(ranks, "exchange_seconds");
  const double exposed = mean_of(ranks, "exposed_exchange_seconds");
  if (!(all > 0)) {
    return {};
  }
  std::string line =
      fmt::format("comm: exchange {:.3f} ms a step, {:.3f} ms of it on a processor",
                  milliseconds * all, milliseconds * mean_of(ranks, "exchange_cpu_seconds"));
  if (exposed >= 0) {
    line += fmt::format("; computing stood still for {:.3f} ms ({:.1f} %)", milliseconds * exposed,
                        100 * exposed / all);
  }
  return line;
}

}  // namespace cnn::bench
