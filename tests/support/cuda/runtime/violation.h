#pragma once

#include <cstddef>
#include <string>
#include <vector>

// Uses of CUDA that the real libraries only punish, by wrong values, crashes or nothing at all. The
// emulation names them.
namespace cnn::tests::emulated {

// Tells of a violation: prints it and ends the process, unless an ExpectViolations is alive, which
// keeps it.
void violate(const std::string& what);

// For tests of the rules: keeps violations instead of ending the process.
class ExpectViolations {
 public:
  ExpectViolations();
  ~ExpectViolations();  // ends the process if violations were not taken
  ExpectViolations(const ExpectViolations&) = delete;
  ExpectViolations& operator=(const ExpectViolations&) = delete;
  static std::vector<std::string> take();  // those kept so far
  static std::size_t count();
};

}  // namespace cnn::tests::emulated
