#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cnn {

// The only exception type of the project. what() is one line for the user: what is wrong, where,
// and what to do. The source location is kept apart, for debugging.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string_view what, std::source_location at = std::source_location::current());
  const std::source_location& where() const noexcept { return where_; }

 private:
  std::source_location where_;
};

// Throws Error(what) unless ok. Build `what` lazily yourself where it costs more than a literal.
inline void check(bool ok, std::string_view what,
                  std::source_location at = std::source_location::current()) {
  if (!ok) [[unlikely]] {
    throw Error(what, at);
  }
}

}  // namespace cnn
