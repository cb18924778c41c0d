// Large model support of PyTorch (1.1 to 1.5) and TensorFlow 2.1 in WML-CE: when the allocator runs
// out of bytes, it reclaims tensors that no running op uses, first in, first out, and copies a
// tensor back when an op needs it, without prefetch. Source facts: the public patches
// (pytorch-large-model-support). They also start speculative copies out at the last use if the
// previous step reclaimed the tensor. Every copy out here is speculative, since the replay knows
// the step; the bytes are still freed only on demand.

#include <optional>
#include <string>
#include <vector>

#include "lms/edit.h"
#include "lms/eviction.h"
#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/python_text.h"
#include "lms/stash.h"

namespace cnn::lms {

namespace {

// Plans like an allocator of so many bytes.
Plan reclaim_within(const Request& request, std::size_t device_bytes) {
  const std::vector<Stashed> tensors = candidates(request);
  const std::vector<Eviction> evictions =
      replay_allocator(request, device_bytes, tensors, EvictionRule::first_that_suffices);
  std::vector<Decision> decisions;
  std::size_t alone = 0;
  std::uint64_t bytes = 0;
  Reclaims reclaims;
  std::optional<StepId> served;
  for (const Eviction& eviction : evictions) {
    decisions.emplace_back(Swap{.tensor = eviction.tensor->tensor,
                                .out_behind = eviction.last_used,
                                .back_before = eviction.back_for,
                                .not_before = compute_before(request.schedule, eviction.back_for),
                                .free_before = eviction.freed_for});
    alone += eviction.sufficed ? 1 : 0;
    if (served != eviction.freed_for) {  // else one more for the same need
      ++(eviction.sufficed ? reclaims.ones : reclaims.alls);
      served = eviction.freed_for;
    }
    bytes += eviction.tensor->bytes;
  }
  return {.schedule = edit(request.schedule, decisions, request.options.sync_mode),
          .notes = {{.level = 0,
                     .text = "Reclaimed " + gib_text(bytes) + " GiB: reclaim_one " +
                             std::to_string(alone) + ", reclaim_fragments " +
                             std::to_string(evictions.size() - alone)}},
          .reclaims = reclaims};
}

}  // namespace

// The original reclaims until there is a large enough gap. The replay only counts bytes, and
// repeats with fewer bytes if the gaps are too small.
Plan reclaim(const Request& request) {
  constexpr std::size_t part = 64, most = 8;
  const std::size_t device = request.budget.device;
  Plan first = reclaim_within(request, device);
  if (fits(request, first.schedule)) {
    return first;
  }
  for (std::size_t parts = 1; parts <= most; parts *= 2) {
    Plan plan = reclaim_within(request, device - device / part * parts);
    if (fits(request, plan.schedule)) {
      return plan;
    }
  }
  return first;
}

}  // namespace cnn::lms
