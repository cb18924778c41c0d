#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cnn {

// The base of every exception of the project. what() is one line for the user: the problem, its
// place, and the remedy. The source location is separate, for debugging.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string_view what, std::source_location at = std::source_location::current());
  const std::source_location& where() const noexcept { return where_; }
  // Returns the exit code of the program, which tells scripts the kind of failure.
  virtual int exit_code() const noexcept { return 1; }

 private:
  std::source_location where_;
};

// The device or the host has too little memory for the request. A smaller one may fit.
class DoesNotFit : public Error {
 public:
  explicit DoesNotFit(std::string_view what,
                      std::source_location at = std::source_location::current())
      : Error(what, at) {}
  int exit_code() const noexcept override { return 3; }
};

// Throws Error(what) unless ok. Build `what` lazily yourself where it costs more than a literal.
inline void check(bool ok, std::string_view what,
                  std::source_location at = std::source_location::current()) {
  if (!ok) [[unlikely]] {
    throw Error(what, at);
  }
}

}  // namespace cnn
