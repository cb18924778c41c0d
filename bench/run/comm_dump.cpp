#include "bench/run/comm_dump.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "bench/ranks/exchange.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/session/session.h"
#include "bench/session/team.h"

namespace cnn::bench {
namespace {

// Returns the quantile of sorted values at `share`.
double at_share(std::span<const double> sorted, double share) {
  const double place = std::ceil(share * static_cast<double>(sorted.size())) - 1;
  return sorted[static_cast<std::size_t>(std::max(0.0, place))];
}

std::string algorithm_text(const allreduce::Candidate& candidate) {
  const std::string name(candidate.algorithm->name);
  return candidate.options.dims.empty()
             ? name
             : fmt::format("{} {}", name, fmt::join(candidate.options.dims, "x"));
}

std::size_t place_of_largest(std::span<const RankWindow> ranks, double RankWindow::*member) {
  const auto found = std::ranges::max_element(ranks, {}, member);
  return static_cast<std::size_t>(found - ranks.begin());
}

// Returns the indices of the longest times, ascending.
std::vector<std::size_t> longest_of(std::span<const WaitAndTransfer> times) {
  constexpr std::size_t most = 16;
  std::vector<std::size_t> places(times.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, std::greater(), [&](std::size_t place) {
    return times[place].wait + times[place].transfer;
  });
  places.resize(std::min(places.size(), most));
  std::ranges::sort(places);
  return places;
}

// Holds one rank's report on a window of steps.
struct RankReport {
  RankWindow window;
  std::vector<ReductionTime> reductions;  // on the first process's clock

  static auto fields(auto& self) { return std::tie(self.window, self.reductions); }
};

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
  double longest = 0;  // largest bound of a bucket
  std::vector<std::pair<std::string, int>> algorithms;
  for (const std::size_t elements : buckets) {
    const auto bytes = static_cast<double>(elements * size_of(settings.wire));
    step.bytes += bytes;
    constexpr double million = 1e6;
    step.bucket_mb.push_back(bytes / million);
    const allreduce::Bound bound = exchange_bound(settings, elements);
    step.bound.seconds += bound.seconds;
    if (bound.seconds > longest) {
      longest = bound.seconds;
      step.bound.by = bound.by;
      step.bound.source = bound.source;
    }
    const std::string algorithm =
        algorithm_text(allreduce::candidates_for(settings, elements).front());
    const auto known =
        std::ranges::find(algorithms, algorithm, &std::pair<std::string, int>::first);
    if (known == algorithms.end()) {
      algorithms.emplace_back(algorithm, 1);
    } else {
      ++known->second;
    }
  }
  for (const auto& [algorithm, count] : algorithms) {
    step.algorithms += step.algorithms.empty() ? fmt::format("{} bucket{} by {}", count,
                                                             count == 1 ? "" : "s", algorithm)
                                               : fmt::format(", {} by {}", count, algorithm);
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
  const std::string distance = distance_text(most.mean, step.bound);
  const double on_wire = 2 * (count - 1) / count * step.bytes;
  return {fmt::format("comm: steps {}-{}: end-to-end {:.2f} ms a step on rank {} (p50 {:.2f}, p99 "
                      "{:.2f}); largest jitter {:.2f} ms on rank {}",
                      first_step, last_step, milli * most.mean, slowest, milli * most.p50,
                      milli * most.p99, milli * ranks[unsteady].jitter, unsteady),
          fmt::format("comm:   {:.2f} MB at {:.2f} GB/s (bus), {}; {}", mega * step.bytes,
                      most.mean > 0 ? giga * on_wire / most.mean : 0,
                      distance.empty() ? "no bound is known" : distance, step.algorithms)};
}

WaitTable wait_table(std::span<const std::vector<ReductionTime>> reductions, std::int64_t steps) {
  const auto count = static_cast<double>(steps);
  std::size_t each = reductions.empty() ? 0 : reductions.front().size();
  for (const std::vector<ReductionTime>& of_rank : reductions) {
    each = std::min(each, of_rank.size());
  }
  WaitTable table;
  table.of_rank.resize(reductions.size());
  for (std::size_t i = 0; i < each; ++i) {
    double latest = 0;
    for (const std::vector<ReductionTime>& of_rank : reductions) {
      latest = std::max(latest, of_rank[i].start);
    }
    WaitAndTransfer most;
    for (std::size_t rank = 0; rank < reductions.size(); ++rank) {
      const ReductionTime& own = reductions[rank][i];
      // A clock that is slightly ahead must not make a time negative.
      const double begun = std::clamp(latest, own.start, own.end);
      const WaitAndTransfer part{(begun - own.start) / count, (own.end - begun) / count};
      table.of_rank[rank].wait += part.wait;
      table.of_rank[rank].transfer += part.transfer;
      most = {std::max(most.wait, part.wait), std::max(most.transfer, part.transfer)};
    }
    const std::size_t bucket = reductions.front()[i].bucket;
    table.of_bucket.resize(std::max(table.of_bucket.size(), bucket + 1));
    table.of_bucket[bucket].wait += most.wait;
    table.of_bucket[bucket].transfer += most.transfer;
  }
  return table;
}

std::vector<std::string> wait_lines(const WaitTable& table, const StepExchange& step) {
  constexpr double milli = 1e3;
  std::vector<std::string> lines{
      fmt::format("comm:   {:>6} {:>9} {:>9} {:>12}", "rank", "", "wait ms", "transfer ms")};
  for (const std::size_t rank : longest_of(table.of_rank)) {
    lines.push_back(fmt::format("comm:   {:>6} {:>9} {:>9.3f} {:>12.3f}", rank, "",
                                milli * table.of_rank[rank].wait,
                                milli * table.of_rank[rank].transfer));
  }
  lines.push_back(
      fmt::format("comm:   {:>6} {:>9} {:>9} {:>12}", "bucket", "MB", "wait ms", "transfer ms"));
  for (const std::size_t bucket : longest_of(table.of_bucket)) {
    const double mb = bucket < step.bucket_mb.size() ? step.bucket_mb[bucket] : 0;
    lines.push_back(fmt::format("comm:   {:>6} {:>9.3f} {:>9.3f} {:>12.3f}", bucket, mb,
                                milli * table.of_bucket[bucket].wait,
                                milli * table.of_bucket[bucket].transfer));
  }
  return lines;
}

CommDump::CommDump(Team& team, Console& console, int every)
    : team_(team), console_(console), every_(every) {}

void CommDump::timing_starts() {
  before_ = team_.exchange_seconds();
  std::ranges::fill(before_, 0);  // the team resets them
  seconds_.assign(before_.size(), {});
  exchanged_ = step_exchange(buckets_of(team_.first().plan()), *team_.exchange());
  clock_ahead_ = team_.clock_ahead();
  team_.take_reductions();
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
  std::vector<RankReport> mine;
  for (std::vector<ReductionTime>& reductions : team_.take_reductions()) {
    for (ReductionTime& one : reductions) {
      one.start -= clock_ahead_;
      one.end -= clock_ahead_;
    }
    std::vector<double>& seconds = seconds_[mine.size()];
    mine.push_back(
        {.window = window_of(std::exchange(seconds, {})), .reductions = std::move(reductions)});
  }
  std::vector<RankWindow> ranks;
  std::vector<std::vector<ReductionTime>> reductions;
  for (RankReport& report : team_.all_gather(mine)) {
    ranks.push_back(report.window);
    reductions.push_back(std::move(report.reductions));
  }
  for (const std::string& line :
       dump_lines(step.number - every_ + 1, step.number, ranks, exchanged_)) {
    console_.note(line);
  }
  for (const std::string& line : wait_lines(wait_table(reductions, every_), exchanged_)) {
    console_.note(line);
  }
}

}  // namespace cnn::bench
