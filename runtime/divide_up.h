#pragma once

#include <concepts>
#include <type_traits>

namespace cnn {

// Returns the quotient rounded up. Both numbers are at least 0, and `divisor` is not 0.
template <std::integral T>
constexpr T divide_up(T number, std::type_identity_t<T> divisor) {
  return (number + divisor - 1) / divisor;
}

// Returns the least multiple that is not below the number.
template <std::integral T>
constexpr T round_up(T number, std::type_identity_t<T> multiple) {
  return divide_up(number, multiple) * multiple;
}

}  // namespace cnn
