#pragma once

#include <functional>
#include <optional>

#include "layers/cpu/onednn/onednn.h"

namespace cnn::layers::cpu {

// Plans a convolution, or one of its gradients, of so many images as the signature has: a pure
// function that keeps the layouts of a signature that it returned before.
using PlanOfImages = std::function<std::optional<Plan>(const Signature&)>;

// Returns the plan of the first images of a batch where a WidenedKernel is faster if it runs them
// before it widens the next: their wide copies then stay in the caches, and take less workspace.
// Returns the plan of the whole batch elsewhere.
std::optional<Plan> plan_in_parts(const Op& op, const Signature& request,
                                  const PlanOfImages& plan_of);

}  // namespace cnn::layers::cpu
