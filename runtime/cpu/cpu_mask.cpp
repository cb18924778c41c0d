#include "runtime/cpu/cpu_mask.h"

namespace cnn {

void CpuMask::add(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), bytes, sets_.data()); }

bool CpuMask::has(int cpu) const {
  return CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, sets_.data());
}

bool CpuMask::read() { return sched_getaffinity(0, bytes, sets_.data()) == 0; }

bool CpuMask::bind() const { return sched_setaffinity(0, bytes, sets_.data()) == 0; }

bool CpuMask::bind(pthread_t thread) const {
  return pthread_setaffinity_np(thread, bytes, sets_.data()) == 0;
}

PinnedCaller::PinnedCaller(int cpu) {
  if (before_.read()) {
    CpuMask one;
    one.add(cpu);
    pinned_ = one.bind();
  }
}

PinnedCaller::~PinnedCaller() {
  if (pinned_) {
    before_.bind();
  }
}

}  // namespace cnn
