#include "bench/machine/openmp_spin.h"

#include <algorithm>
#include <cstdlib>
#include <sys/auxv.h>
#include <unistd.h>

namespace cnn::bench {

// Where threads are bound, the library has bound this one already, and the program would inherit
// its only processor.
bool leaves_spinning_open(const char* (*lookup)(const char* name)) {
  constexpr const char* variables[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND",
                                       "OMP_PLACES", "GOMP_CPU_AFFINITY"};
  return std::ranges::all_of(variables, [&](const char* name) { return lookup(name) == nullptr; });
}

void limit_openmp_spinning(const std::string& path, char** argv) {
  // The program was started by the kernel, not by naming the dynamic linker, whose path this is
  // then.
  const bool started_by_kernel = getauxval(AT_BASE) != 0;
  const auto lookup = [](const char* name) -> const char* { return std::getenv(name); };
  if (!started_by_kernel || !path.starts_with('/') || !leaves_spinning_open(lookup)) {
    return;
  }
  if (setenv("GOMP_SPINCOUNT", std::to_string(openmp_spin_count).c_str(), 1) == 0) {
    execv(path.c_str(), argv);
    unsetenv("GOMP_SPINCOUNT");  // nothing was started, and the library has not read it
  }
}

}  // namespace cnn::bench
