#include "lms/disk_tier.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "lms/summary.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

// A swapped tensor's copy on the host, from its Offload to its last Fetch. Numbers are of steps.
struct HostCopy {
  TensorId tensor{};
  std::size_t offload = 0;
  std::optional<std::size_t> first_fetch;
  std::size_t last_fetch = 0;
  std::size_t bytes = 0;
  double reuse_seconds = 0;  // from the end of the Offload to the start of the first Fetch
  bool stored = false;       // goes on to the disk
  std::size_t load = 0;      // if stored: the step that the Load precedes
};

// Requires a schedule without Stores.
std::vector<HostCopy> host_copies(const Request& request, const Schedule& schedule) {
  const Graph& graph = request.graph;
  std::vector<HostCopy> copies;
  double now = 0;  // seconds of computing so far
  std::vector<std::optional<std::size_t>> latest(graph.tensors().size());
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    const Action& action = schedule.steps[s].action;
    if (const auto* offload = std::get_if<Offload>(&action)) {
      if (may_move(graph, offload->tensor)) {
        latest[index_of(offload->tensor)] = copies.size();
        copies.push_back(
            {.tensor = offload->tensor,
             .offload = s,
             .last_fetch = s,
             .bytes = round_up(graph.info(offload->tensor).desc.bytes(), disk_alignment),
             .reuse_seconds = -now});
      }
    } else if (const auto* fetch = std::get_if<Fetch>(&action)) {
      if (const auto copy = latest[index_of(fetch->tensor)]) {
        HostCopy& one = copies[*copy];
        one.reuse_seconds += one.first_fetch ? 0 : now;
        one.first_fetch = one.first_fetch.value_or(s);
        one.last_fetch = s;
      }
    } else if (const auto* compute = std::get_if<Compute>(&action)) {
      now += request.costs.seconds[index_of(compute->node)];
    }
  }
  return copies;
}

// Chooses which copies go to the disk so that the host holds at most so many bytes, and the places
// of Stores and Loads.
class DiskTier {
 public:
  DiskTier(const Schedule& schedule, std::vector<HostCopy> copies)
      : schedule_(schedule), copies_(std::move(copies)), held_(schedule.steps.size()) {
    for (const HostCopy& copy : copies_) {
      add(copy.offload, copy.last_fetch + 1, copy.bytes);
      by_reuse_.push_back(by_reuse_.size());
    }
    std::ranges::stable_sort(by_reuse_, std::greater<>(), [&](std::size_t c) {
      return std::pair(copies_[c].reuse_seconds, copies_[c].bytes);
    });
  }

  // Returns false if the host cannot hold even the copies under way.
  bool choose(std::size_t host_bytes, std::size_t disk_bytes) {
    limit_ = host_bytes;
    for (const std::size_t c : by_reuse_) {
      HostCopy& copy = copies_[c];
      if (copy.first_fetch && most(copy.offload + 1, *copy.first_fetch) > limit_) {
        set_stored(copy, true);
      }
    }
    for (auto c = by_reuse_.rbegin(); c != by_reuse_.rend(); ++c) {
      HostCopy& copy = copies_[*c];
      if (copy.stored && most(copy.offload + 1, *copy.first_fetch) + copy.bytes <= limit_) {
        set_stored(copy, false);
      }
    }
    std::size_t stored = 0;
    for (const HostCopy& copy : copies_) {
      stored += copy.stored ? copy.bytes : 0;
    }
    return stored <= disk_bytes && most(0, held_.size()) <= limit_;
  }

  Schedule write() {
    place_loads();
    for (std::size_t s = 0; s < schedule_.steps.size(); ++s) {
      write_loads(s);
      Step step = schedule_.steps[s];
      for (StepId& wait : step.after) {
        wait = placed_[index_of(wait)];
      }
      free_for(s, step.after);
      placed_.push_back(StepId{static_cast<std::uint32_t>(result_.steps.size())});
      result_.steps.push_back(std::move(step));
      write_store(s);
    }
    return std::move(result_);
  }

 private:
  void add(std::size_t from, std::size_t to, std::size_t bytes) {
    for (std::size_t s = from; s < to; ++s) {
      held_[s] += bytes;
    }
  }
  std::size_t most(std::size_t from, std::size_t to) const {
    return from < to ? *std::max_element(held_.begin() + static_cast<std::ptrdiff_t>(from),
                                         held_.begin() + static_cast<std::ptrdiff_t>(to))
                     : 0;
  }

  // A stored copy is on the host during its Offload, and from its first Fetch on.
  void set_stored(HostCopy& copy, bool stored) {
    copy.stored = stored;
    for (std::size_t s = copy.offload + 1; s < *copy.first_fetch; ++s) {
      held_[s] = stored ? held_[s] - copy.bytes : held_[s] + copy.bytes;
    }
  }

  // Places each Load as early as the host has room until its Fetch: behind all Stores before that
  // Fetch, since the disk serves one request after another, and in the order of the Fetches.
  void place_loads() {
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      if (copies_[c].stored) {
        loads_.push_back(c);
      }
    }
    std::ranges::stable_sort(loads_, {},
                             [&](std::size_t c) { return copies_[c].first_fetch.value(); });
    std::size_t earliest = 0;
    for (const std::size_t c : loads_) {
      HostCopy& copy = copies_[c];
      for (const std::size_t other : loads_) {
        const std::size_t offload = copies_[other].offload;
        earliest = offload < *copy.first_fetch ? std::max(earliest, offload + 1) : earliest;
      }
      copy.load = *copy.first_fetch;
      while (copy.load > earliest && held_[copy.load - 1] + copy.bytes <= limit_) {
        --copy.load;
        held_[copy.load] += copy.bytes;
      }
      earliest = copy.load;
    }
  }

  void write_loads(std::size_t s) {
    for (; next_load_ < loads_.size() && copies_[loads_[next_load_]].load == s; ++next_load_) {
      const std::size_t c = loads_[next_load_];
      std::vector<StepId> after;
      free_for(s, after);
      while (std::ranges::any_of(pending_, [&](const auto& one) { return one.copy == c; })) {
        free_oldest(after);
      }
      result_.steps.push_back(
          {.action = Load{copies_[c].tensor}, .lane = Lane::disk, .after = std::move(after)});
    }
  }

  void write_store(std::size_t s) {
    for (; next_copy_ < copies_.size() && copies_[next_copy_].offload == s; ++next_copy_) {
      const HostCopy& copy = copies_[next_copy_];
      if (copy.stored) {
        pending_.push_back(
            {.copy = next_copy_, .step = StepId{static_cast<std::uint32_t>(result_.steps.size())}});
        pending_bytes_ += copy.bytes;
        result_.steps.push_back({.action = Store{copy.tensor}, .lane = Lane::disk, .after = {}});
      }
    }
  }

  // Lets a step wait for the oldest Stores until the host has room at step `s`.
  void free_for(std::size_t s, std::vector<StepId>& after) {
    while (!pending_.empty() && pending_bytes_ + held_[s] > limit_) {
      free_oldest(after);
    }
  }
  void free_oldest(std::vector<StepId>& after) {
    after.push_back(pending_.front().step);
    pending_bytes_ -= copies_[pending_.front().copy].bytes;
    pending_.pop_front();
  }

  // A Store whose host bytes no step has waited for.
  struct Pending {
    std::size_t copy = 0;
    StepId step{};
  };

  const Schedule& schedule_;
  std::vector<HostCopy> copies_;       // by Offload
  std::vector<std::size_t> by_reuse_;  // copies, the longest absence first
  std::vector<std::size_t> held_;      // by step: host bytes
  std::size_t limit_ = 0;
  std::vector<std::size_t> loads_;  // stored copies by first Fetch
  Schedule result_;
  std::vector<StepId> placed_;  // by step of the given schedule
  std::deque<Pending> pending_;
  std::size_t pending_bytes_ = 0;
  std::size_t next_load_ = 0, next_copy_ = 0;
};

// Asks for the bytes that are live first, since placing them takes far longer.
bool fits_on_host(const Request& request, const Schedule& schedule) {
  const std::vector<std::size_t> no_workspaces(request.graph.nodes().size());
  const std::size_t host = request.budget.host;
  return peak_memory(request.graph, schedule, no_workspaces).host_bytes <= host &&
         host_arena_bytes(request.graph, schedule) <= host;
}

}  // namespace

Schedule with_disk_tier(const Request& request, Schedule schedule) {
  const auto stores = [](const Step& step) { return std::holds_alternative<Store>(step.action); };
  if (request.budget.disk == 0 || std::ranges::any_of(schedule.steps, stores) ||
      fits_on_host(request, schedule)) {
    return schedule;
  }
  const std::vector<HostCopy> copies = host_copies(request, schedule);
  // Placement may need a little more than the bytes that are held at once.
  constexpr int attempts = 8;
  std::size_t limit = request.budget.host;
  for (int a = 0; a < attempts; ++a) {
    DiskTier tier(schedule, copies);
    if (!tier.choose(limit, request.budget.disk)) {
      break;
    }
    Schedule tiered = tier.write();
    const std::size_t host = host_arena_bytes(request.graph, tiered);
    if (host <= request.budget.host) {
      return tiered;
    }
    limit -= std::min(limit, std::max(host - request.budget.host, limit / 64));
  }
  return schedule;
}

}  // namespace cnn::lms
