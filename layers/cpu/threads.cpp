#include "layers/cpu/threads.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <omp.h>
#include <string>
#include <string_view>
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

// Sets flush-to-zero for subnormal results (bit 15) and denormals-are-zero for operands (bit 6):
// Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 1, 10.2.3. An operation on a
// subnormal otherwise takes over a hundred cycles, and the gradient of a confident softmax is full
// of them.
void flush_subnormals() {
  constexpr unsigned flush_to_zero = 1U << 15, subnormals_are_zero = 1U << 6;
  _mm_setcsr(_mm_getcsr() | flush_to_zero | subnormals_are_zero);
}

std::string_view environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? std::string_view() : value;
}

// Returns the processors of all places that OpenMP may bind threads to, ascending; empty without
// places.
std::vector<int> cpus_of_places() {
  std::vector<int> all;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> cpus(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, cpus.data());
    all.insert(all.end(), cpus.begin(), cpus.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// oneDNN divides its work by the number of threads that were asked for, and would wait without end
// for those that never came.
void check_team(int given, int asked) {
  if (given < asked) {
    throw Error("OpenMP gives " + std::to_string(given) + " of " + std::to_string(asked) +
                " threads: raise OMP_THREAD_LIMIT, or compute with fewer threads");
  }
}

}  // namespace

std::vector<int> affinity_cpus() {
  if (std::vector<int> cpus = cpus_of_places(); user_binds_threads() && !cpus.empty()) {
    return cpus;
  }
  CpuMask mask;
  if (!mask.read()) {
    throw Error("cannot read the processors of this process: " +
                std::generic_category().message(errno));
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CpuMask::max_cpus; ++cpu) {
    if (mask.has(cpu)) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

std::optional<int> asked_threads() {
  const std::string text(environment("OMP_NUM_THREADS"));
  char* stop = nullptr;
  const long threads = std::strtol(text.c_str(), &stop, 10);  // skips blanks, as OpenMP does
  const std::string_view rest(stop);
  const std::size_t next = rest.find_first_not_of(" \t");
  const bool ends = next == std::string_view::npos || rest[next] == ',';
  const bool valid = ends && threads > 0 && threads <= std::numeric_limits<int>::max();
  return valid ? std::optional<int>(static_cast<int>(threads)) : std::nullopt;
}

int available_threads(int wanted) {
  return omp_get_max_active_levels() > 0 ? std::min(wanted, omp_get_thread_limit()) : 1;
}

bool user_binds_threads() {
  return !environment("OMP_PROC_BIND").empty() || !environment("OMP_PLACES").empty() ||
         !environment("GOMP_CPU_AFFINITY").empty();
}

void use_threads(std::span<const int> cpus, Caller caller) {
  check(!cpus.empty(), "use_threads: no processor given; name at least one");
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= CpuMask::max_cpus) {
      throw Error("use_threads: there is no processor " + std::to_string(cpu));
    }
  }
  const int threads = static_cast<int>(cpus.size());
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  std::atomic<int> refused = -1, given = 0;
#pragma omp parallel num_threads(threads)
  {
    ++given;
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
  check_team(given, threads);
}

void use_unpinned_threads(int threads) {
  check(threads > 0, "use_unpinned_threads: a team has one thread or more");
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
  std::atomic<int> given = 0;
#pragma omp parallel num_threads(threads)
  {
    ++given;
    flush_subnormals();
  }
  check_team(given, threads);
}

}  // namespace cnn::layers::cpu
