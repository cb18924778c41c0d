#include "bench/ranks/simulate_ranks.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "bench/flags/flag_rules.h"
#include "bench/ranks/exchange.h"
#include "bench/ranks/exchange_choice.h"
#include "bench/ranks/exchange_flags.h"
#include "layers/all_reduce.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

// An exchange of a step, by bucket: its node and its number of elements.
struct ExchangeNode {
  std::size_t node = 0, elements = 0;
};

std::vector<ExchangeNode> exchanges_of(const StepPlan& plan) {
  const std::vector<std::size_t> elements = buckets_of(plan);
  std::vector<ExchangeNode> all(elements.size());
  const std::span<const Node> nodes = plan.graph->nodes();
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (const auto* const op = dynamic_cast<const layers::AllReduce*>(nodes[n].op.get())) {
      all[op->bucket] = {n, elements[op->bucket]};
    }
  }
  return all;
}

allreduce::Topology topology_of(std::int64_t ranks, int each) {
  check_full_hosts(ranks, each);
  const auto n = static_cast<int>(ranks);
  return n <= each ? allreduce::ranks_on_hosts(1, n) : allreduce::ranks_on_hosts(n / each, each);
}

std::string candidate_text(const allreduce::Candidate& candidate) {
  std::string text(candidate.algorithm->name);
  if (!candidate.options.dims.empty()) {
    text += " " + allreduce::dims_text(candidate.options);
  }
  return candidate.options.chunks > 1 ? fmt::format("{} in {}", text, candidate.options.chunks)
                                      : text;
}

// Computes when the last gradient of each bucket is ready, and returns the last of all.
double last_ready(const StepPlan& plan, const Timeline& timeline,
                  std::span<const ExchangeNode> exchanges) {
  double last = 0;
  for (std::size_t step = 0; step < plan.schedule.steps.size(); ++step) {
    const auto* const compute = std::get_if<Compute>(&plan.schedule.steps[step].action);
    const auto is = [&](const ExchangeNode& e) { return index_of(compute->node) == e.node; };
    if (compute != nullptr && std::ranges::any_of(exchanges, is)) {
      last = std::max(last, timeline[step].start);
    }
  }
  return last;
}

// The step with exchanges that take no time.
struct BaselineStep {
  const StepPlan& plan;
  std::span<const ExchangeNode> exchanges;
  Costs costs;
  double seconds = 0, backward_end = 0;
};

RanksPrediction predict_step_of(const BaselineStep& step, const RankAssumptions& assumed,
                                const allreduce::Settings& settings) {
  RanksPrediction found{.ranks = settings.topology.ranks(),
                        .hosts = settings.topology.host_of.back() + 1,
                        .alone_seconds = step.seconds};
  std::map<std::size_t, allreduce::Candidate> candidates;  // the fastest by number of elements
  const auto candidate_of = [&](std::size_t elements) -> const allreduce::Candidate& {
    if (!candidates.contains(elements)) {
      candidates.emplace(elements, candidates_for(settings, elements).front());
    }
    return candidates.at(elements);
  };
  Costs with = step.costs;
  std::size_t all = 0, largest = 0;
  for (const ExchangeNode& exchange : step.exchanges) {
    with.seconds[exchange.node] = candidate_of(exchange.elements).seconds;
    found.exchange_seconds += with.seconds[exchange.node];
    all += exchange.elements;
    largest = std::max(largest, exchange.elements);
  }
  found.overlapped_seconds = end_of(simulate(step.plan, with));
  add_assumed(found, assumed);
  std::vector<allreduce::BucketTime> together;
  if (all > 0) {
    found.largest_by = candidate_text(candidate_of(largest));
    together.push_back({.ready = step.backward_end, .seconds = candidate_of(all).seconds});
  }
  found.without_overlap = allreduce::predict_step({.compute = step.seconds,
                                                   .backward_end = step.backward_end,
                                                   .buckets = together,
                                                   .jitter = assumed.jitter * step.seconds,
                                                   .ranks = found.ranks});
  return found;
}

}  // namespace

RankAssumptions assumptions_of(const CommFlags& flags) {
  return {.jitter = flags.simulate_ranks_jitter, .slowdown = flags.simulate_ranks_slowdown};
}

void add_assumed(RanksPrediction& prediction, const RankAssumptions& assumed) {
  const double hidden = std::max(0.0, prediction.exchange_seconds - prediction.exposed_seconds());
  prediction.slowdown_seconds = assumed.slowdown * hidden;
  prediction.straggler_seconds =
      allreduce::predict_step(
          {.jitter = assumed.jitter * prediction.alone_seconds, .ranks = prediction.ranks})
          .straggler;
}

std::string assumptions_text(const RankAssumptions& assumed) {
  constexpr double percent = 100;
  return fmt::format(
      "assumed: the step of a rank has a standard deviation of {:g} % (--simulate_ranks_jitter), "
      "and computing takes {:g} % longer while an exchange runs beside it "
      "(--simulate_ranks_slowdown)",
      percent * assumed.jitter, percent * assumed.slowdown);
}

Exchange simulated_exchange(const Config& config, std::int64_t ranks, const StepPlan& plan) {
  const allreduce::Topology topology = topology_of(ranks, config.comm.simulate_ranks_per_host);
  Exchange exchange =
      possible_exchange(config, topology, /*peers_memory=*/false, largest_bucket(plan));
  const auto& file = config.comm.calibration_file;
  const allreduce::LinkSpeeds speeds = file ? read_links(*file).speeds : allreduce::LinkSpeeds{};
  exchange.settings.links = with_flags(speeds.links, config.comm);
  exchange.settings.sources = with_flags(speeds.sources, config.comm);
  return exchange;
}

std::vector<RanksPrediction> predict_ranks(const StepPlan& plan, const Costs& costs,
                                           const Config& config) {
  const std::vector<ExchangeNode> exchanges = exchanges_of(plan);
  Costs alone = costs;
  for (const ExchangeNode& exchange : exchanges) {
    alone.seconds[exchange.node] = 0;
  }
  const Timeline undisturbed = simulate(plan, alone);
  const BaselineStep step{.plan = plan,
                          .exchanges = exchanges,
                          .costs = alone,
                          .seconds = end_of(undisturbed),
                          .backward_end = last_ready(plan, undisturbed, exchanges)};
  std::vector<RanksPrediction> predictions;
  for (const std::int64_t ranks : config.comm.simulate_ranks) {
    predictions.push_back(predict_step_of(step, assumptions_of(config.comm),
                                          simulated_exchange(config, ranks, plan).settings));
  }
  return predictions;
}

void report_ranks(std::span<const RanksPrediction> predictions, double batch, Console& console,
                  Json& result) {
  constexpr double percent = 100, milli = 1e3;
  result = Json::array();
  for (const RanksPrediction& p : predictions) {
    const double speed = p.ranks * batch / p.step_seconds();
    const double hidden =
        p.exchange_seconds > 0 ? std::max(0.0, 1 - p.exposed_seconds() / p.exchange_seconds) : 1;
    const double plain = p.alone_seconds / p.without_overlap.seconds;
    console.note(fmt::format(
        "simulate: {} ranks on {} hosts: {:.1f} images/sec, efficiency {:.2f} %; exchange {:.3f} "
        "ms, {:.3f} ms of it exposed ({:.1f} % hidden), largest bucket by {}; computing slowed "
        "down by {:.3f} ms, {:.3f} ms for the slowest rank; without overlap {:.2f} %",
        p.ranks, p.hosts, speed, percent * p.efficiency(), milli * p.exchange_seconds,
        milli * p.exposed_seconds(), percent * hidden, p.largest_by.empty() ? "none" : p.largest_by,
        milli * p.slowdown_seconds, milli * p.straggler_seconds, percent * plain));
    result.push_back({{"ranks", p.ranks},
                      {"hosts", p.hosts},
                      {"images_per_sec", speed},
                      {"step_seconds", p.step_seconds()},
                      {"efficiency", p.efficiency()},
                      {"exchange_seconds", p.exchange_seconds},
                      {"exposed_seconds", p.exposed_seconds()},
                      {"slowdown_seconds", p.slowdown_seconds},
                      {"straggler_seconds", p.straggler_seconds},
                      {"source", "derived"},
                      {"efficiency_without_overlap", plain}});
  }
}

}  // namespace cnn::bench
