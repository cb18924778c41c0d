#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/tensor.h"

namespace cnn::tests {

// The results that operands which are not finite may have. exact: NaN and infinities as expected.
// inexact: NaN or infinity wherever one of them is expected, since an algorithm may subtract
// infinities where another does not; and elsewhere too, since it may multiply what it does not need
// by zero.
enum class NonFinite : std::uint8_t { exact, inexact };

// As difference() of tests/support/numeric.h, for results of such operands.
std::optional<std::string> difference(const TensorView& expected, const TensorView& actual,
                                      double tolerance, NonFinite allowed);

}  // namespace cnn::tests
