// Large model support of caffe-ibm in PowerAI 5.2: blobs above a size have a buffer on the host;
// when the device is full, blobs that the next layer does not need are swapped out. Compute waits
// for all copies. A blob that returned unchanged leaves without a copy. Source facts: IBM's
// syncedmem.cpp in a public fork, and the log of a run. Its cache splits and merges blocks; this
// policy counts bytes, not addresses.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lms/edit.h"
#include "lms/eviction.h"
#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/stash.h"
#include "runtime/access.h"

namespace cnn::lms {
namespace {

// A blob is managed once all requests so far exceed this share of the memory.
std::vector<Stashed> managed(const Request& request) {
  const double unmanaged = request.options.frac * static_cast<double>(request.budget.device);
  std::vector<std::size_t> running_sum(request.graph.tensors().size());
  std::size_t sum = 0;
  for (const Step& step : request.schedule.steps) {
    for_each_access(request.graph, step.action, [&](const Access& access) {
      const TensorInfo& info = request.graph.info(access.tensor);
      if (access.kind == Access::Kind::define && !info.alias) {
        sum += info.desc.bytes();
        running_sum[index_of(access.tensor)] = sum;
      }
    });
  }
  std::vector<Stashed> tensors = candidates(request);
  std::erase_if(tensors, [&](const Stashed& tensor) {
    return static_cast<double>(running_sum[index_of(tensor.tensor)]) < unmanaged;
  });
  return tensors;
}

// The usage in the original's log at allocations: with a header of 8 bytes, in per cent of the
// memory.
class Log {
 public:
  Log(const Request& request, const std::vector<Stashed>& tensors,
      const std::vector<Eviction>& evictions)
      : memory_(static_cast<double>(request.budget.device + request.variable_bytes)) {
    for (const Stashed& tensor : tensors) {
      changes_.push_back(
          {.step = tensor.made, .comes = true, .bytes = tensor.bytes, .first = true});
      changes_.push_back({.step = tensor.last, .bytes = tensor.bytes});
    }
    for (const Eviction& eviction : evictions) {
      const std::size_t bytes = eviction.tensor->bytes;
      changes_.push_back({.step = eviction.freed_for, .bytes = bytes});
      changes_.push_back({.step = eviction.back_for, .comes = true, .bytes = bytes});
    }
    std::ranges::stable_sort(changes_, {},
                             [](const Change& c) { return std::pair(c.step, c.comes); });
  }

  std::vector<Note> notes() {
    std::vector<Note> notes;
    for (const Change& change : changes_) {
      if (!change.comes) {
        used_ -= std::min(used_, change.bytes);
        continue;
      }
      count_ += change.first ? 1 : 0;
      demanded_ += change.first ? change.bytes : 0;
      used_ += change.bytes;
      if (used_ > allocated_) {
        allocated_ = used_;
        notes.push_back({.level = 1, .text = text(change.bytes)});
      }
    }
    if (!notes.empty()) {
      notes.back().level = 0;
    }
    return notes;
  }

 private:
  struct Change {
    StepId step{};
    bool comes = false;
    std::size_t bytes = 0;
    bool first = false;
  };

  std::string text(std::size_t bytes) const {
    return "allocate: size=" + std::to_string(bytes + 8) + " [count=" + std::to_string(count_) +
           " demanded=" + percent(demanded_) + " allocated=" + percent(allocated_) +
           " available=" + percent(allocated_ - used_) + "]";
  }
  std::string percent(std::size_t bytes) const {
    const double share = memory_ > 0 ? 100 * static_cast<double>(bytes) / memory_ : 0;
    return std::to_string(static_cast<long>(share)) + "%";
  }

  double memory_;
  std::vector<Change> changes_;
  std::size_t count_ = 0, demanded_ = 0, used_ = 0, allocated_ = 0;
};

}  // namespace

Plan caffe(const Request& request) {
  const std::vector<Stashed> tensors = managed(request);
  const std::vector<Eviction> evictions =
      replay_allocator(request, request.budget.device, tensors, EvictionRule::oldest);
  std::vector<Decision> decisions;
  decisions.reserve(evictions.size());
  for (const Eviction& eviction : evictions) {
    decisions.emplace_back(Swap{.tensor = eviction.tensor->tensor,
                                .out_behind = eviction.last_used,
                                .back_before = eviction.back_for,
                                .not_before = std::nullopt,
                                .on_host = eviction.again});
  }
  return {.schedule = edit(request.schedule, decisions, SyncMode::both),
          .notes = Log(request, tensors, evictions).notes()};
}

}  // namespace cnn::lms
