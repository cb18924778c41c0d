#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/tensor.h"

namespace cnn::tests {

// The results that are allowed for non-finite operands. exact: NaN and infinities exactly as
// expected. inexact: NaN or infinity wherever one is expected, because algorithms may subtract
// infinities differently, and also elsewhere, because they may multiply unneeded values by zero.
enum class NonFinite : std::uint8_t { exact, inexact };

// Like difference() of tests/support/numeric.h, for results of such operands.
std::optional<std::string> difference(const TensorView& expected, const TensorView& actual,
                                      double tolerance, NonFinite allowed);

}  // namespace cnn::tests
