#include "tests/support/cuda/runtime/violation.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace cnn::tests::emulated {
namespace {

struct Violations {
  std::mutex mutex;
  int expecting = 0;
  std::vector<std::string> kept;
};

// C functions without an object share this state, so the process has one of it.
Violations& violations() {
  static Violations all;
  return all;
}

[[noreturn]] void end(const std::string& what) {
  static_cast<void>(std::fprintf(stderr, "emulated GPU: %s\n", what.c_str()));
  std::abort();
}

}  // namespace

void violate(const std::string& what) {
  Violations& all = violations();
  const std::scoped_lock lock(all.mutex);
  if (all.expecting == 0) {
    end(what);
  }
  all.kept.push_back(what);
}

ExpectViolations::ExpectViolations() {
  const std::scoped_lock lock(violations().mutex);
  ++violations().expecting;
}

ExpectViolations::~ExpectViolations() {
  const std::scoped_lock lock(violations().mutex);
  --violations().expecting;
  if (!violations().kept.empty()) {
    end("a test did not look at: " + violations().kept.front());
  }
}

std::size_t ExpectViolations::count() {
  const std::scoped_lock lock(violations().mutex);
  return violations().kept.size();
}

std::vector<std::string> ExpectViolations::take() {
  const std::scoped_lock lock(violations().mutex);
  return std::exchange(violations().kept, {});
}

}  // namespace cnn::tests::emulated
