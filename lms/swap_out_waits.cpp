#include "lms/swap_out_waits.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "lms/live_bytes.h"
#include "lms/plan_schedule.h"
#include "lms/summary.h"
#include "runtime/memory_plan.h"
#include "runtime/program.h"
#include "runtime/timeline.h"

namespace cnn::lms {
namespace {

// A swap-out whose bytes no step of the policy's schedule waits for. Numbers are of steps.
struct OpenSwapOut {
  std::size_t step = 0;
  std::size_t back = 0;  // the next Fetch of the tensor; the number of steps: none
  std::size_t bytes = 0;
};

Request with_schedule(const Request& request, const Schedule& schedule) {
  return {.graph = request.graph,
          .specs = request.specs,
          .schedule = schedule,
          .backward = request.backward,
          .costs = request.costs,
          .budget = request.budget,
          .variable_bytes = request.variable_bytes,
          .options = request.options,
          .stopped = request.stopped};
}

// Returns, by step, the latest copy out that the schedule lets it wait for.
std::vector<std::optional<std::size_t>> awaited_copies(const Schedule& schedule) {
  std::vector<std::optional<std::size_t>> awaited(schedule.steps.size());
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    for (const StepId wait : schedule.steps[s].after) {
      if (schedule.steps[index_of(wait)].lane == Lane::copy_out) {
        awaited[s] = std::max(awaited[s].value_or(0), index_of(wait));
      }
    }
  }
  return awaited;
}

std::vector<OpenSwapOut> open_swap_outs(const Graph& graph, const Schedule& schedule) {
  const std::size_t count = schedule.steps.size();
  const std::vector<std::optional<std::size_t>> awaited = awaited_copies(schedule);
  std::vector<std::size_t> fetched(graph.tensors().size(), count);  // the next Fetch
  std::vector<OpenSwapOut> open;
  for (std::size_t s = count; s-- > 0;) {
    const Action& action = schedule.steps[s].action;
    if (const auto* fetch = std::get_if<Fetch>(&action)) {
      fetched[index_of(fetch->tensor)] = s;
    }
    const auto* offload = std::get_if<Offload>(&action);
    if (offload == nullptr || !may_move(graph, offload->tensor)) {
      continue;
    }
    const std::size_t back = fetched[index_of(offload->tensor)];
    const auto end = awaited.begin() + static_cast<std::ptrdiff_t>(back);
    const bool is_awaited = std::any_of(awaited.begin() + static_cast<std::ptrdiff_t>(s), end,
                                        [&](const auto& copy) { return copy && *copy >= s; });
    if (!is_awaited) {
      open.push_back(
          {.step = s, .back = back, .bytes = aligned(graph.info(offload->tensor).desc.bytes())});
    }
  }
  std::ranges::reverse(open);
  return open;
}

class Waits {
 public:
  Waits(const Request& request, const Schedule& schedule)
      : request_(request),
        schedule_(schedule),
        open_(open_swap_outs(request.graph, schedule)),
        live_(live_bytes(with_schedule(request, schedule))) {}

  bool has_open() const { return !open_.empty(); }
  std::size_t min_bytes() const { return live_.empty() ? 0 : std::ranges::max(live_); }

  // Returns the schedule with waits that keep what lives and what leaves within so many bytes.
  Schedule within(std::size_t bytes) const {
    const std::vector<std::size_t> needed = steps_that_need(bytes);
    return with_waits(steps_that_start_later(with_waits(needed), needed));
  }

 private:
  // Returns, by open swap-out, the step that waits for it since there is no room beside it, or the
  // one that fetches the tensor again; the number of steps: none.
  std::vector<std::size_t> steps_that_need(std::size_t bytes) const {
    std::vector<std::size_t> needed(open_.size(), schedule_.steps.size());
    std::size_t oldest = 0, next = 0, leaving = 0;  // the leaving: [oldest, next)
    for (std::size_t s = 0; s < schedule_.steps.size(); ++s) {
      if (next < open_.size() && open_[next].step == s) {
        leaving += open_[next++].bytes;
        continue;
      }
      const auto returns = [&](const OpenSwapOut& one) { return one.back == s; };
      const auto from = open_.begin() + static_cast<std::ptrdiff_t>(oldest);
      const auto to = open_.begin() + static_cast<std::ptrdiff_t>(next);
      const auto own = std::find_if(from, to, returns);
      const auto until = own == to ? oldest : static_cast<std::size_t>(own - open_.begin()) + 1;
      const bool takes = !std::holds_alternative<Offload>(schedule_.steps[s].action);
      while (oldest < next && (oldest < until || (takes && live_[s] + leaving > bytes))) {
        leaving -= open_[oldest].bytes;
        needed[oldest++] = s;
      }
    }
    return needed;
  }

  // Lets each swap-out that ends before it is needed be waited for by the first compute step that
  // starts later.
  std::vector<std::size_t> steps_that_start_later(const Schedule& schedule,
                                                  std::vector<std::size_t> needed) const {
    Schedule linked = schedule;
    link(request_.graph, linked,
         plan_memory(request_.graph, schedule, workspaces_of(request_), request_.budget.device));
    const Timeline timeline = simulate(request_.graph, linked, request_.costs);
    for (std::size_t d = 0; d < open_.size(); ++d) {
      for (std::size_t s = open_[d].step + 1; s < needed[d]; ++s) {
        if (schedule.steps[s].lane == Lane::compute &&
            timeline[s].start >= timeline[open_[d].step].end) {
          needed[d] = s;
        }
      }
    }
    return needed;
  }

  Schedule with_waits(const std::vector<std::size_t>& steps) const {
    Schedule schedule = schedule_;
    std::vector<std::optional<std::size_t>> latest(schedule.steps.size());
    for (std::size_t d = 0; d < open_.size(); ++d) {
      if (steps[d] < latest.size()) {
        latest[steps[d]] = open_[d].step;  // copies of the lane end in their order
      }
    }
    for (std::size_t s = 0; s < latest.size(); ++s) {
      if (latest[s]) {
        schedule.steps[s].after.push_back(StepId{static_cast<std::uint32_t>(*latest[s])});
      }
    }
    return schedule;
  }

  const Request& request_;
  const Schedule& schedule_;
  std::vector<OpenSwapOut> open_;  // in the order of the schedule
  std::vector<std::size_t> live_;  // by step, without what is leaving
};

}  // namespace

Plan with_swap_out_waits(const Request& request, Plan plan) {
  const Waits waits(request, plan.schedule);
  const Outcome given = outcome_of(request, plan.schedule, plan.enough);
  const auto fits = [&](const Outcome& outcome) {
    return outcome.device_bytes <= request.budget.device &&
           outcome.host_bytes <= request.budget.swap_bytes();
  };
  if (!waits.has_open() || !fits(given)) {
    return plan;
  }
  const std::size_t least = waits.min_bytes();
  std::size_t bytes = std::max(request.budget.device, least);
  constexpr int attempts = 6;
  for (int a = 0; a < attempts; ++a) {
    Schedule made = waits.within(bytes);
    const Outcome outcome = outcome_of(request, made, request.budget.device);
    if (fits(outcome)) {
      if (outcome.seconds < given.seconds) {
        plan.schedule = std::move(made);
        plan.enough = request.budget.device;
      }
      break;
    }
    bytes = least + (bytes - least) / 2;
  }
  return plan;
}

}  // namespace cnn::lms
