// Recomputation alone, after T. Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.
// cheap: drops and recomputes the outputs of ReLU, norms, sums, concatenations and pools. full:
// keeps only separators of the forward pass: the inputs of blocks, and within chains every n-th
// tensor, with n the square root of their length; a block runs again before its gradients. If the
// user leaves the choice open, takes the first of nothing, cheap and full that fits.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "lms/edit.h"
#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/repeats.h"
#include "lms/stash.h"
#include "runtime/access.h"

namespace cnn::lms {
namespace {

constexpr std::string_view cheap_ops[] = {"relu",         "batch_norm",  "batch_norm_inference",
                                          "add",          "concat",      "max_pool",
                                          "average_pool", "spatial_mean"};

std::string_view maker_of(const Request& request, const Stashed& tensor) {
  const Action& action = request.schedule.steps[index_of(tensor.made)].action;
  return request.graph.nodes()[index_of(std::get<Compute>(action).node)].op->name();
}

// Returns the candidates that are unused while some step runs between their last forward use and
// their first backward use.
std::vector<Stashed> idle_candidates(const Request& request) {
  std::vector<Stashed> tensors = candidates(request);
  std::erase_if(tensors, [&](const Stashed& tensor) {
    return compute_before(request.schedule, tensor.first_backward) <= tensor.last_forward;
  });
  return tensors;
}

std::vector<TensorId> made_cheaply(const Request& request) {
  std::vector<TensorId> dropped;
  for (const Stashed& tensor : idle_candidates(request)) {
    if (std::ranges::find(cheap_ops, maker_of(request, tensor)) != std::end(cheap_ops)) {
      dropped.push_back(tensor.tensor);
    }
  }
  return dropped;
}

// An image or matrix of the forward pass, from its producer to its last use there.
struct ForwardSpan {
  TensorId tensor{};
  std::size_t made = 0, last = 0;
  std::size_t readers = 0;
  bool ends_block = false;  // earlier tensors do not separate
};

std::vector<ForwardSpan> forward_spans(const Request& request) {
  std::vector<ForwardSpan> by_tensor(request.graph.tensors().size());
  std::vector<TensorId> order;
  for (std::size_t s = 0; s < index_of(request.backward); ++s) {
    for_each_access(request.graph, request.schedule.steps[s].action, [&](const Access& access) {
      const TensorId root = request.graph.root_of(access.tensor);
      const TensorInfo& info = request.graph.info(root);
      if (info.role != Role::activation || info.desc.shape.rank() < 2) {
        return;
      }
      ForwardSpan& span = by_tensor[index_of(root)];
      if (access.kind == Access::Kind::define) {
        if (span.made == 0 && span.last == 0) {
          order.push_back(root);
        }
        span.tensor = root;
        span.made = s;
      } else {
        ++span.readers;
      }
      span.last = s;
    });
  }
  std::vector<ForwardSpan> spans;
  std::ranges::transform(order, std::back_inserter(spans),
                         [&](TensorId root) { return by_tensor[index_of(root)]; });
  std::erase_if(spans, [](const ForwardSpan& span) { return span.last == span.made; });
  std::ranges::stable_sort(spans, {}, &ForwardSpan::made);
  return spans;
}

// Returns the tensors that alone connect earlier steps to later ones.
std::vector<ForwardSpan> separators(const Request& request) {
  const std::vector<ForwardSpan> spans = forward_spans(request);
  std::vector<std::size_t> across(index_of(request.backward) + 1);  // by step: spans that continue
  for (const ForwardSpan& span : spans) {
    for (std::size_t s = span.made; s < span.last; ++s) {
      ++across[s];
    }
  }
  std::vector<ForwardSpan> alone;
  bool in_block = false;
  for (ForwardSpan span : spans) {
    const bool separates = across[span.made] == 1;
    if (separates) {
      span.ends_block = in_block;
      alone.push_back(span);
    }
    in_block = !separates;
  }
  return alone;
}

// Returns the separators around blocks, and some of those between.
std::vector<TensorId> kept_of(const std::vector<ForwardSpan>& alone) {
  const auto stride = static_cast<std::size_t>(
      std::max(1.0, std::round(std::sqrt(static_cast<double>(alone.size())))));
  std::vector<TensorId> kept;
  std::size_t since = 0;
  for (const ForwardSpan& span : alone) {
    if (++since >= stride || span.readers > 1 || span.ends_block) {
      kept.push_back(span.tensor);
      since = 0;
    }
  }
  return kept;
}

std::vector<TensorId> within_blocks(const Request& request) {
  const std::vector<TensorId> kept = kept_of(separators(request));
  std::vector<TensorId> dropped;
  for (const Stashed& tensor : idle_candidates(request)) {
    if (std::ranges::find(kept, tensor.tensor) == kept.end()) {
      dropped.push_back(tensor.tensor);
    }
  }
  return dropped;
}

Plan plan_without(const Request& request, const std::vector<TensorId>& dropped) {
  Repeats repeats(request);
  std::vector<std::size_t> roots;
  std::ranges::transform(dropped, std::back_inserter(roots),
                         [&](TensorId tensor) { return repeats.root(tensor); });
  std::vector<Decision> decisions;
  std::ranges::copy(repeats.drop_each(roots, request.options.n_tensors),
                    std::back_inserter(decisions));
  return {.schedule = edit(request.schedule, decisions), .notes = {}};
}

}  // namespace

Plan recompute(const Request& request) {
  switch (request.options.recompute) {
    case Recomputation::off:
      return none(request);
    case Recomputation::cheap:
      return plan_without(request, made_cheaply(request));
    case Recomputation::full:
      return plan_without(request, within_blocks(request));
    case Recomputation::automatic:
      break;
  }
  if (fits(request, request.schedule)) {
    return none(request);
  }
  Plan cheap = plan_without(request, made_cheaply(request));
  return fits(request, cheap.schedule) ? std::move(cheap)
                                       : plan_without(request, within_blocks(request));
}

}  // namespace cnn::lms
