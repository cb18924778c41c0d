#pragma once

#include <exception>
#include <new>

#include "runtime/error.h"

namespace cnn::bench {

// Returns the exit status of a program that ends with this exception.
inline int exit_code_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return DoesNotFit("").exit_code();
  }
  const auto* own = dynamic_cast<const Error*>(&error);
  return own == nullptr ? 1 : own->exit_code();
}

}  // namespace cnn::bench
