#pragma once

#include <exception>

#include "runtime/error.h"

namespace cnn::bench {

// The exit status of a program that this ends.
inline int exit_code_of(const std::exception& error) {
  const auto* own = dynamic_cast<const Error*>(&error);
  return own == nullptr ? 1 : own->exit_code();
}

}  // namespace cnn::bench
