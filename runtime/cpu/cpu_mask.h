#pragma once

#include <array>
#include <cstddef>
#include <pthread.h>
#include <sched.h>

namespace cnn {

// A set of processors. It has room for the most that any Linux kernel knows: machines may have more
// than cpu_set_t has bits. Nothing here allocates.
class CpuMask {
 public:
  static constexpr int most_cpus = 8192;

  void add(int cpu);  // 0 <= cpu < most_cpus
  bool has(int cpu) const;
  bool read();                        // becomes that of the calling thread; false: errno says why
  bool bind() const;                  // the calling thread to it; false: the system refuses
  bool bind(pthread_t thread) const;  // the same for another thread

 private:
  static constexpr std::size_t bits = 8 * sizeof(cpu_set_t);
  static constexpr std::size_t bytes = most_cpus / 8;

  std::array<cpu_set_t, most_cpus / bits> sets_{};
};

// Keeps the calling thread on one processor as long as it lives, if the system lets it.
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
