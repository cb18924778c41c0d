#pragma once

#include <functional>
#include <string>

#include "runtime/error.h"

namespace cnn::tests {

// Returns the message of the Error that `work` throws, or "" if it throws none.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace cnn::tests
