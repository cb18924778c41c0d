#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/kernel.h"

namespace cnn::layers {

// Returns the seconds that a node takes on the device, or nothing if they are unknown. Nodes with
// equal keys compute the same function on operands of the same shapes, types and layouts.
using NodeSeconds = std::function<std::optional<double>(const std::string& key, const Op& op,
                                                        const Signature& signature)>;

}  // namespace cnn::layers
