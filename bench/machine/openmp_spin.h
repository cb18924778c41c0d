#pragma once

#include <string>

namespace cnn::bench {

// Idle OpenMP threads spin before they sleep. GNU's library lets them spin for milliseconds, so
// that a thread whose partner has lost its core to another process burns the core that the partner
// needs: beside two busy loops a step of resnet20 takes ten times as long. Spinning is limited here
// to tens of microseconds, which outlast the pauses within a step; on an idle machine both are
// equally fast.
inline constexpr int openmp_spin_count = 2000;  // GOMP_SPINCOUNT

// Returns whether the environment leaves the waiting and the binding of threads to the library:
// OMP_WAIT_POLICY, GOMP_SPINCOUNT, OMP_PROC_BIND, OMP_PLACES and GOMP_CPU_AFFINITY are not set.
// `lookup` is std::getenv in a program.
bool leaves_spinning_open(const char* (*lookup)(const char* name));

// Starts the program at this absolute path once more in this process with GOMP_SPINCOUNT set,
// because the library reads it only while it is loaded. Returns at once if the user has chosen how
// threads wait or where they run, or if the program cannot be started again, as when the dynamic
// linker was named to run it; the program then continues unchanged.
void limit_openmp_spinning(const std::string& path, char** argv);

}  // namespace cnn::bench
