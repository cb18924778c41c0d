#pragma once

#include <array>
#include <cstddef>
#include <pthread.h>
#include <sched.h>

namespace cnn {

// A set of processors, with room for as many as any Linux kernel supports: machines may have more
// processors than cpu_set_t has bits. No member allocates.
class CpuMask {
 public:
  static constexpr int max_cpus = 8192;

  void add(int cpu);  // 0 <= cpu < max_cpus
  bool has(int cpu) const;
  bool read();                        // reads the calling thread's affinity; false: errno says why
  bool bind() const;                  // pins the calling thread; false: the system refuses
  bool bind(pthread_t thread) const;  // pins another thread; false: the system refuses

 private:
  static constexpr std::size_t bits = 8 * sizeof(cpu_set_t);
  static constexpr std::size_t bytes = max_cpus / 8;

  std::array<cpu_set_t, max_cpus / bits> sets_{};
};

// Pins the calling thread to one processor for the lifetime of the object, if the system permits.
class PinnedCaller {
 public:
  explicit PinnedCaller(int cpu);
  ~PinnedCaller();
  PinnedCaller(const PinnedCaller&) = delete;
  PinnedCaller& operator=(const PinnedCaller&) = delete;

 private:
  CpuMask before_;
  bool pinned_ = false;
};

}  // namespace cnn
