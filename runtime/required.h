#pragma once

#include <utility>

namespace cnn {

// A member of an option struct without a default: a designated initializer that omits it does not
// compile. A plain member would be zero there, which is wrong for a pitch, a stride or a count.
template <class T>
class Required {
 public:
  constexpr Required(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  constexpr operator const T&() const { return value_; }     // NOLINT(google-explicit-constructor)

 private:
  T value_;
};

}  // namespace cnn
