#pragma once

#include <optional>
#include <span>
#include <vector>

namespace cnn::layers::cpu {

// Returns the processors that this process may run on, ascending. If the user binds threads,
// returns those of OpenMP's places, because OpenMP narrows the first thread's mask to one place.
std::vector<int> affinity_cpus();

// Returns the first number of OMP_NUM_THREADS; nothing if the variable is unset or not a number,
// which OpenMP ignores too.
std::optional<int> asked_threads();

// Returns how many of these threads OpenMP gives to a team: fewer where OMP_THREAD_LIMIT or
// OMP_MAX_ACTIVE_LEVELS=0 says so.
int available_threads(int wanted);

// Returns whether the user sets OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY.
bool user_binds_threads();

enum class Caller : bool { free, pinned };

// Gives the OpenMP team of the calling thread cpus.size() threads, thread i pinned to cpus[i]. The
// caller is thread 0: by default it may run on any of cpus, since threads that it starts inherit
// its mask. Make and run kernels on threads prepared alike: oneDNN plans for the team size of the
// thread that makes a primitive. All team threads, and threads that they start, treat subnormal
// numbers as zero from then on. Throws Error if cpus is empty, if a processor does not exist, or if
// OpenMP gives fewer threads.
void use_threads(std::span<const int> cpus, Caller caller = Caller::free);

// Uses threads that are not pinned, or that the user's OpenMP variables bind. Throws Error if
// OpenMP gives fewer.
void use_unpinned_threads(int threads);

}  // namespace cnn::layers::cpu
