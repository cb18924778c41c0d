#pragma once

#include <optional>

#include "layers/conv.h"
#include "layers/cpu/onednn/onednn.h"

namespace cnn::layers::cpu {

// Returns oneDNN's primitive for a convolution or one of its gradients, in the layouts of the
// request or others that are faster, as add_primitive() wants it.
std::optional<Plan> plan_conv(const Conv2d& op, const Signature& s, const Target& target);
std::optional<Plan> plan_conv(const Conv2dBackwardData& op, const Signature& s,
                              const Target& target);
// The gradient lies in the order of the forward pass's weights where a fast kernel writes it.
std::optional<Plan> plan_conv(const Conv2dBackwardWeights& op, const Signature& s,
                              const Target& target);

}  // namespace cnn::layers::cpu
