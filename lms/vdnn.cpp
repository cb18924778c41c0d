// M. Rhu et al., "vDNN: Virtualized Deep Neural Networks for Scalable, Memory-Efficient Neural
// Network Design", 2016. The input of every feature layer (all), or of every convolution (conv),
// leaves during that layer's forward step, which ends with the copy. A layer's backward step starts
// the copy back of the nearest earlier input that is still away, searching back to the next
// convolution. The dynamic variant takes the first of none, conv and all that fits; the policy does
// not choose convolution algorithms, so it has no variants with slower ones.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lms/edit.h"
#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/stash.h"

namespace cnn::lms {
namespace {

enum class Layers : std::uint8_t { conv, all };

class Offloader {
 public:
  Offloader(const Request& request, Layers layers)
      : request_(request), layers_(layers), leaving_(request.schedule.steps.size()) {
    for (const Stashed& tensor : candidates(request)) {
      if (is_offloaded(tensor) && has_room()) {
        leaving_[index_of(tensor.last_forward)].push_back(tensors_.size());
        tensors_.push_back(tensor);
      }
    }
    triggers_.resize(tensors_.size());
  }

  Plan plan() {
    find_triggers();
    std::vector<Decision> decisions;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      decisions.emplace_back(swap(t));
    }
    return {.schedule = edit(request_.schedule, decisions, request_.options.sync_mode),
            .notes = {}};
  }

 private:
  bool has_room() const {
    return request_.options.n_tensors < 0 ||
           std::cmp_less(tensors_.size(), request_.options.n_tensors);
  }
  bool is_conv(StepId step) const {
    const auto* compute = std::get_if<Compute>(&request_.schedule.steps[index_of(step)].action);
    if (compute == nullptr) {
      return false;
    }
    const std::string_view op = request_.graph.nodes()[index_of(compute->node)].op->name();
    return op == "conv" || op == "fused_conv";
  }
  // Returns whether a layer of the forward pass reads the image.
  bool is_offloaded(const Stashed& tensor) const {
    const auto& uses = tensor.uses;
    return tensor.last_forward > tensor.made &&
           request_.graph.info(tensor.tensor).desc.shape.rank() == 4 &&
           (layers_ == Layers::all || std::ranges::any_of(uses, [&](StepId use) {
              return use < request_.backward && is_conv(use);
            }));
  }

  // Returns the layer that reads the tensor last; the step after its producer if none does.
  static std::size_t layer_of(const Stashed& tensor) {
    return std::max(index_of(tensor.last_forward), index_of(tensor.made) + 1);
  }

  // A backward layer has the position of the inputs that it reads.
  void find_triggers() {
    std::size_t layer = request_.schedule.steps.size();
    std::vector<std::optional<std::size_t>> reached(layer);
    for (const Stashed& tensor : stashed(request_.graph, request_.schedule, request_.backward)) {
      for (const StepId use : tensor.uses) {
        if (use >= request_.backward) {
          std::optional<std::size_t>& there = reached[index_of(use)];
          there = std::min(there.value_or(layer), layer_of(tensor));
        }
      }
    }
    for (std::size_t s = index_of(request_.backward); s < reached.size(); ++s) {
      if (reached[s] && *reached[s] < layer) {
        layer = *reached[s];
        prefetch(StepId{static_cast<std::uint32_t>(s)}, layer);
      }
    }
  }

  // The copy starts with the step, so after the previous step.
  void prefetch(StepId step, std::size_t layer) {
    for (std::size_t earlier = layer; earlier-- > 0;) {
      for (const std::size_t t : leaving_[earlier]) {
        if (!triggers_[t] && tensors_[t].first_backward > step) {
          triggers_[t] = compute_before(request_.schedule, step);
          return;
        }
      }
      if (is_conv(StepId{static_cast<std::uint32_t>(earlier)})) {
        return;
      }
    }
  }

  Swap swap(std::size_t t) const {
    const Stashed& tensor = tensors_[t];
    const StepId trigger =
        triggers_[t].value_or(compute_before(request_.schedule, tensor.first_backward));
    Swap swap{.tensor = tensor.tensor,
              .out_behind = tensor.last_forward,
              .back_before = tensor.first_backward,
              .not_before = std::max(trigger, tensor.last_forward)};
    swap.free_before = next_compute(tensor.last_forward);
    if (swap.free_before && *swap.free_before > *swap.not_before) {
      swap.free_before.reset();  // it returns before that step
    }
    return swap;
  }
  std::optional<StepId> next_compute(StepId step) const {
    for (std::size_t s = index_of(step) + 1; s < request_.schedule.steps.size(); ++s) {
      if (request_.schedule.steps[s].lane == Lane::compute) {
        return StepId{static_cast<std::uint32_t>(s)};
      }
    }
    return std::nullopt;
  }

  const Request& request_;
  Layers layers_;
  std::vector<std::vector<std::size_t>> leaving_;  // by StepId: tensors last read by this layer
  std::vector<Stashed> tensors_;
  std::vector<std::optional<StepId>> triggers_;  // by tensor
};

}  // namespace

Plan vdnn_all(const Request& request) { return Offloader(request, Layers::all).plan(); }
Plan vdnn_conv(const Request& request) { return Offloader(request, Layers::conv).plan(); }

Plan vdnn_dynamic(const Request& request) {
  using Named = std::pair<const char*, Policy>;
  for (const auto& [name, policy] : {Named{"none", none}, Named{"vdnn_conv", vdnn_conv}}) {
    Plan plan = policy(request);
    if (fits(request, plan.schedule)) {
      plan.notes.push_back({.level = 0, .text = std::string("vdnn_dynamic chose ") + name});
      return plan;
    }
  }
  Plan plan = vdnn_all(request);
  plan.notes.push_back({.level = 0, .text = "vdnn_dynamic chose vdnn_all"});
  return plan;
}

}  // namespace cnn::lms
