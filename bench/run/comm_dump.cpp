#include "bench/run/comm_dump.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <sstream>
#include <utility>

#include "bench/run/exchange.h"
#include "bench/run/exchange_flags.h"
#include "bench/run/session.h"
#include "bench/run/team.h"

namespace cnn::bench {
namespace {

// Of sorted values that at which so large a share is not larger.
double at_share(std::span<const double> sorted, double share) {
  const double place = std::ceil(share * static_cast<double>(sorted.size())) - 1;
  return sorted[static_cast<std::size_t>(std::max(0.0, place))];
}

std::string way_of(const allreduce::Candidate& way) {
  const std::string name(way.algorithm->name);
  return way.options.dims.empty() ? name
                                  : fmt::format("{} {}", name, fmt::join(way.options.dims, "x"));
}

std::size_t place_of_largest(std::span<const RankWindow> ranks, double RankWindow::*member) {
  const auto found = std::ranges::max_element(ranks, {}, member);
  return static_cast<std::size_t>(found - ranks.begin());
}

}  // namespace

RankWindow window_of(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  constexpr double half = 0.5, most = 0.99;
  return {.mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) /
                  static_cast<double>(seconds.size()),
          .p50 = at_share(seconds, half),
          .p99 = at_share(seconds, most),
          .jitter = seconds.back() - seconds.front()};
}

StepExchange step_exchange(std::span<const std::size_t> buckets, const Exchange& exchange) {
  const allreduce::Settings& settings = exchange.settings;
  StepExchange step;
  std::vector<std::pair<std::string, int>> ways;
  for (const std::size_t elements : buckets) {
    const auto bytes = static_cast<double>(elements * size_of(settings.wire));
    step.bytes += bytes;
    step.least_seconds +=
        allreduce::bound(settings.topology, bytes, settings.links, settings.peers_memory);
    const std::string way = way_of(allreduce::ways_of(settings, elements).front());
    const auto known = std::ranges::find(ways, way, &std::pair<std::string, int>::first);
    if (known == ways.end()) {
      ways.emplace_back(way, 1);
    } else {
      ++known->second;
    }
  }
  for (const auto& [way, count] : ways) {
    step.ways += step.ways.empty()
                     ? fmt::format("{} bucket{} by {}", count, count == 1 ? "" : "s", way)
                     : fmt::format(", {} by {}", count, way);
  }
  return step;
}

std::vector<std::string> dump_lines(std::int64_t first_step, std::int64_t last_step,
                                    std::span<const RankWindow> ranks, const StepExchange& step) {
  constexpr double milli = 1e3, mega = 1e-6, giga = 1e-9;
  const std::size_t slowest = place_of_largest(ranks, &RankWindow::mean);
  const std::size_t unsteady = place_of_largest(ranks, &RankWindow::jitter);
  const RankWindow& most = ranks[slowest];
  const auto count = static_cast<double>(ranks.size());
  const double on_wire = 2 * (count - 1) / count * step.bytes;
  return {fmt::format("comm: steps {}-{}: end-to-end {:.2f} ms a step on rank {} (p50 {:.2f}, p99 "
                      "{:.2f}); largest jitter {:.2f} ms on rank {}",
                      first_step, last_step, milli * most.mean, slowest, milli * most.p50,
                      milli * most.p99, milli * ranks[unsteady].jitter, unsteady),
          fmt::format("comm:   {:.2f} MB at {:.2f} GB/s (bus), {:.2f} x the least; {}",
                      mega * step.bytes, most.mean > 0 ? giga * on_wire / most.mean : 0,
                      step.least_seconds > 0 ? most.mean / step.least_seconds : 0, step.ways)};
}

CommDump::CommDump(Team& team, Console& console, int every)
    : team_(team), console_(console), every_(every) {}

void CommDump::timing_starts() {
  before_ = team_.exchange_seconds();
  std::ranges::fill(before_, 0);  // the team forgets them
  seconds_.assign(before_.size(), {});
  exchanged_ = step_exchange(buckets_of(team_.first().plan()), *team_.exchange());
}

void CommDump::step_finished(const FinishedStep& step) {
  if (!step.timed()) {
    return;
  }
  const std::vector<double> now = team_.exchange_seconds();
  for (std::size_t rank = 0; rank < now.size(); ++rank) {
    seconds_[rank].push_back(now[rank] - std::exchange(before_[rank], now[rank]));
  }
  if (step.number % every_ != 0) {
    return;
  }
  std::vector<std::string> mine;
  for (std::vector<double>& seconds : seconds_) {
    const RankWindow window = window_of(std::exchange(seconds, {}));
    mine.push_back(fmt::format("{} {} {} {}", window.mean, window.p50, window.p99, window.jitter));
  }
  std::vector<RankWindow> ranks;
  for (const std::string& text : team_.gather(mine)) {
    std::istringstream words(text);
    RankWindow& window = ranks.emplace_back();
    words >> window.mean >> window.p50 >> window.p99 >> window.jitter;
  }
  for (const std::string& line :
       dump_lines(step.number - every_ + 1, step.number, ranks, exchanged_)) {
    console_.note(line);
  }
}

}  // namespace cnn::bench
