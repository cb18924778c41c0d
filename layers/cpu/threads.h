#pragma once

#include <optional>
#include <span>
#include <vector>

namespace cnn::layers::cpu {

// The processors that this process may run on, ascending: those of OpenMP's places where the user
// binds threads, as OpenMP has narrowed the mask of the first thread to one place then.
std::vector<int> affinity_cpus();

// The first number of the user's OMP_NUM_THREADS; nothing where it is not set or is no such number,
// which OpenMP ignores too.
std::optional<int> asked_threads();

// Whether the user says how threads are bound, by OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY.
bool user_binds_threads();

enum class Caller : bool { free, pinned };

// Gives the OpenMP team of the calling thread cpus.size() threads, thread i pinned to cpus[i]. The
// caller is thread 0: it stays free to run on any of cpus unless asked otherwise, since threads
// that it starts inherit its mask. Kernels run and should be made on threads prepared alike, as
// oneDNN plans for the team size of the thread that makes a primitive. All of them treat subnormal
// numbers as zero from then on, and so do the threads that they start. Throws Error if cpus is
// empty or a processor does not exist.
void use_threads(std::span<const int> cpus, Caller caller = Caller::free);

// The same with threads that are pinned nowhere, or where the user's OpenMP variables say.
void use_unpinned_threads(int threads);

}  // namespace cnn::layers::cpu
