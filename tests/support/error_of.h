#pragma once

#include <functional>
#include <string>

#include "runtime/error.h"

namespace cnn::tests {

// Returns what the Error said that `work` threw; empty if it threw none.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace cnn::tests
