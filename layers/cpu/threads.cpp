#include "layers/cpu/threads.h"

#include <atomic>
#include <cerrno>
#include <omp.h>
#include <string>
#include <system_error>
#include <xmmintrin.h>

#include "runtime/cpu/cpu_mask.h"
#include "runtime/error.h"

namespace cnn::layers::cpu {
namespace {

// Binds the calling thread; returns false if the system refuses.
bool bind(std::span<const int> cpus) {
  CpuMask mask;
  for (const int cpu : cpus) {
    mask.add(cpu);
  }
  return mask.bind();
}

// Subnormal results become zero (bit 15), and subnormal operands count as zero (bit 6): Intel 64
// and IA-32 Architectures Software Developer's Manual, vol. 1, 10.2.3. An operation on one takes
// over a hundred cycles otherwise, and the gradient of a confident softmax is full of them.
void flush_subnormals() {
  constexpr unsigned flush_to_zero = 1U << 15, subnormals_are_zero = 1U << 6;
  _mm_setcsr(_mm_getcsr() | flush_to_zero | subnormals_are_zero);
}

}  // namespace

std::vector<int> affinity_cpus() {
  CpuMask mask;
  if (!mask.read()) {
    throw Error("cannot read the processors of this process: " +
                std::generic_category().message(errno));
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CpuMask::most_cpus; ++cpu) {
    if (mask.has(cpu)) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

void use_threads(std::span<const int> cpus, Caller caller) {
  check(!cpus.empty(), "use_threads: no processor given; name at least one");
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= CpuMask::most_cpus) {
      throw Error("use_threads: there is no processor " + std::to_string(cpu));
    }
  }
  const int threads = static_cast<int>(cpus.size());
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  std::atomic<int> refused = -1;
#pragma omp parallel num_threads(threads)
  {
    flush_subnormals();
    const auto index = static_cast<std::size_t>(omp_get_thread_num());
    const bool all = index == 0 && caller == Caller::free;
    if (!bind(all ? cpus : cpus.subspan(index, 1))) {
      refused = cpus[index];
    }
  }
  if (refused >= 0) {
    throw Error("use_threads: this process may not run on processor " + std::to_string(refused) +
                "; choose among those of its affinity mask");
  }
}

}  // namespace cnn::layers::cpu
