#pragma once

#include <optional>
#include <string>

#include "runtime/tensor.h"

namespace cnn::tests {

// Describes where and how two plain tensors of one shape differ by more than allowed; returns
// nothing if they do not. A floating-point value may differ by `tolerance` times the larger of
// |expected| and the root mean square of all expected values. Integers must be equal; NaN equals
// NaN.
std::optional<std::string> difference(const TensorView& expected, const TensorView& actual,
                                      double tolerance);

}  // namespace cnn::tests
