// The scheduler of Sony's nnabla (SwapInOutScheduler): a look-ahead window over the recorded order
// in which a step accesses tensors. The window extends ahead of the current step until the tensors
// in it take 1.5 times the device's bytes. A tensor is swapped out after a step unless its next use
// lies in the window, and swap-ins start as early as all tensors up to their use fit in the device.
// A swap-out is cancelled if the window reaches the tensor again at once; later its bytes may have
// been reused. If the original fails, its users must give it fewer bytes; this policy then retries
// with fewer. The original's first, recording step and its handling of unrecorded uses have no
// counterpart, because the order is known. Source facts: the public scheduler.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "lms/edit.h"
#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/python_text.h"
#include "lms/stash.h"
#include "runtime/access.h"
#include "runtime/memory_plan.h"

namespace cnn::lms {
namespace {

class Window {
 public:
  // size: of the window, in budgets.
  Window(const Request& request, double size)
      : request_(request),
        window_bytes_(static_cast<std::size_t>(size * static_cast<double>(request.budget.device))),
        workspaces_(workspaces_of(request)),
        blocks_(request.graph.tensors().size()),
        uses_(request.schedule.steps.size()) {
    for (std::uint32_t s = 0; s < uses_.size(); ++s) {
      for_each_access(request.graph, request.schedule.steps[s].action, [&](const Access& access) {
        const TensorId root = request.graph.root_of(access.tensor);
        if (!is_persistent(request.graph.info(root).role)) {
          add_use(StepId{s}, root);
        }
      });
    }
    for (const Stashed& tensor : candidates(request)) {
      blocks_[index_of(tensor.tensor)].made = tensor.made;
    }
  }

  std::vector<Decision> decisions() {
    for (std::uint32_t s = 0; s < uses_.size(); ++s) {
      advance(StepId{s});
      look_ahead();
      leave_behind(StepId{s});
    }
    return std::move(decisions_);
  }

 private:
  struct Block {
    std::vector<StepId> uses;
    std::optional<StepId> made;  // of tensors that may leave
    bool counted = false;        // its bytes are in use, or reserved
    std::optional<StepId> left;  // after this step
    bool has_left = false;
  };

  void add_use(StepId step, TensorId root) {
    std::vector<StepId>& uses = blocks_[index_of(root)].uses;
    if (uses.empty() || uses.back() != step) {
      uses.push_back(step);
      uses_[index_of(step)].push_back(root);
    }
  }
  Block& block(TensorId root) { return blocks_[index_of(root)]; }
  std::size_t bytes_of(TensorId root) const {
    return aligned(request_.graph.info(root).desc.bytes());
  }
  std::size_t workspace(StepId step) const {
    const auto* compute = std::get_if<Compute>(&request_.schedule.steps[index_of(step)].action);
    return compute == nullptr ? 0 : aligned(workspaces_[index_of(compute->node)]);
  }

  // Advances to the first step whose tensors do not fit beside the counted ones, but past `step`.
  void advance(StepId step) {
    std::size_t largest_workspace = 0;
    for (std::size_t s = index_of(step); s < end_; ++s) {
      largest_workspace =
          std::max(largest_workspace, workspace(StepId{static_cast<std::uint32_t>(s)}));
    }
    for (; end_ < uses_.size(); ++end_) {
      const StepId met{static_cast<std::uint32_t>(end_)};
      largest_workspace = std::max(largest_workspace, workspace(met));
      std::size_t bytes = largest_workspace;
      for (const TensorId root : uses_[end_]) {
        bytes += block(root).counted ? 0 : bytes_of(root);
      }
      if (met > step && counted_bytes_ + bytes > request_.budget.device) {
        return;
      }
      for (const TensorId root : uses_[end_]) {
        meet(root, met, step);
      }
    }
  }

  // Moves the end of the window behind the last step up to which all tensors from here on fit in
  // it.
  void look_ahead() {
    std::size_t bytes = counted_bytes_;
    std::vector<TensorId> met;
    for (window_end_ = end_; window_end_ < uses_.size(); ++window_end_) {
      for (const TensorId root : uses_[window_end_]) {
        if (!block(root).counted && std::ranges::find(met, root) == met.end()) {
          bytes += bytes_of(root);
          met.push_back(root);
        }
      }
      if (bytes > window_bytes_) {
        return;
      }
    }
  }

  void meet(TensorId root, StepId met, StepId now) {
    Block& b = block(root);
    if (b.counted) {
      return;
    }
    b.counted = true;
    counted_bytes_ += bytes_of(root);
    if (!b.left) {
      return;  // created or fetched there
    }
    const StepId left = *std::exchange(b.left, std::nullopt);
    if (index_of(left) + 1 == index_of(now)) {
      return;  // still on the device
    }
    decisions_.emplace_back(
        Swap{.tensor = root,
             .out_behind = left,
             .back_before = met,
             .not_before = std::max(compute_before(request_.schedule, now), left)});
  }

  void leave_behind(StepId step) {
    for (const TensorId root : uses_[index_of(step)]) {
      Block& b = block(root);
      const auto next = std::ranges::upper_bound(b.uses, step);
      if (next == b.uses.end()) {
        uncount(root);
      } else if (index_of(*next) >= window_end_ && may_leave(b, step)) {
        b.left = step;
        gone_ += b.has_left ? 0 : 1;
        b.has_left = true;
        uncount(root);
      }
    }
  }
  bool may_leave(const Block& b, StepId step) const {
    const std::int64_t most = request_.options.n_tensors;
    return b.made && *b.made <= step &&
           request_.schedule.steps[index_of(step)].lane == Lane::compute &&
           (most < 0 || b.has_left || std::cmp_less(gone_, most));
  }
  void uncount(TensorId root) {
    Block& b = block(root);
    counted_bytes_ -= b.counted ? bytes_of(root) : 0;
    b.counted = false;
  }

  const Request& request_;
  std::size_t window_bytes_;
  std::vector<std::size_t> workspaces_;      // by NodeId
  std::vector<Block> blocks_;                // by TensorId of roots
  std::vector<std::vector<TensorId>> uses_;  // by StepId: roots
  std::size_t end_ = 0;  // the first step whose tensors do not fit in the device beside the others
  std::size_t window_end_ = 0;                // the first step that the window has not met
  std::size_t counted_bytes_ = 0, gone_ = 0;  // tensors that have left
  std::vector<Decision> decisions_;
};

}  // namespace

Plan window(const Request& request) {
  constexpr std::array<double, 3> sizes{1.5, 1.25, 1};
  Plan plan;
  for (const double size : sizes) {
    plan = {.schedule = edit(request.schedule, Window(request, size).decisions(),
                             request.options.sync_mode),
            .notes = {
                {.level = 1, .text = "The window has " + python_text(size) + " times the budget"}}};
    if (fits(request, plan.schedule)) {
      break;
    }
  }
  return plan;
}

}  // namespace cnn::lms
