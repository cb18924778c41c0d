#pragma once

#include <cstddef>
#include <string>
#include <vector>

// Reports violations: uses of CUDA that the real libraries punish only by wrong values, by crashes
// or not at all.
namespace cnn::tests::emulated {

// Reports a violation: prints it and ends the process. While an ExpectViolations exists, it keeps
// the violation instead.
void violate(const std::string& what);

// Keeps violations instead of ending the process, for tests of the rules.
class ExpectViolations {
 public:
  ExpectViolations();
  ~ExpectViolations();  // ends the process if violations were not taken
  ExpectViolations(const ExpectViolations&) = delete;
  ExpectViolations& operator=(const ExpectViolations&) = delete;
  static std::vector<std::string> take();  // returns and removes the kept violations
  static std::size_t count();
};

}  // namespace cnn::tests::emulated
