#pragma once

#include <span>
#include <vector>

namespace cnn::layers::cpu {

// The processors that this process may run on, ascending.
std::vector<int> affinity_cpus();

enum class Caller : bool { free, pinned };

// Gives the OpenMP team of the calling thread cpus.size() threads, thread i pinned to cpus[i]. The
// caller is thread 0: it stays free to run on any of cpus unless asked otherwise, since threads
// that it starts inherit its mask. Kernels run and should be made on threads prepared alike, as
// oneDNN plans for the team size of the thread that makes a primitive. All of them treat subnormal
// numbers as zero from then on, and so do the threads that they start. Throws Error if cpus is
// empty or a processor does not exist.
void use_threads(std::span<const int> cpus, Caller caller = Caller::free);

}  // namespace cnn::layers::cpu
