#include "runtime/cpu/cpu_mask.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

namespace cnn {
namespace {

std::vector<int> cpus_of(const CpuMask& mask) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CpuMask::max_cpus; ++cpu) {
    if (mask.has(cpu)) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

std::vector<int> allowed_cpus() {
  CpuMask mask;
  EXPECT_TRUE(mask.read());
  return cpus_of(mask);
}

TEST(CpuMask, HasWhatWasAddedAtEveryEdgeOfAWord) {
  CpuMask mask;
  EXPECT_EQ(cpus_of(mask), std::vector<int>{});
  const std::vector<int> cpus{0, 1, 63, 64, 1023, 1024, 8191};
  for (const int cpu : cpus) {
    mask.add(cpu);
  }
  EXPECT_EQ(cpus_of(mask), cpus);
  mask.add(64);
  EXPECT_EQ(cpus_of(mask), cpus) << "it was there already";
}

TEST(CpuMask, ReadsTheProcessorsOfTheCallingThread) {
  const std::vector<int> cpus = allowed_cpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_EQ(static_cast<int>(cpus.size()), [] {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    return CPU_COUNT(&set);
  }());
}

// In threads of their own, so that the others of this test keep their processors.
TEST(CpuMask, BindsTheCallingThread) {
  const int last = allowed_cpus().back();
  std::thread([last] {
    CpuMask mask;
    mask.add(last);
    EXPECT_TRUE(mask.bind());
    EXPECT_EQ(allowed_cpus(), std::vector<int>{last});
    EXPECT_EQ(sched_getcpu(), last);
  }).join();
  EXPECT_EQ(allowed_cpus().back(), last);
}

TEST(CpuMask, BindsAnotherThread) {
  const std::vector<int> before = allowed_cpus();
  std::thread([&before] {
    const pthread_t inner = pthread_self();
    std::thread([inner, &before] {
      CpuMask mask;
      mask.add(before.front());
      EXPECT_TRUE(mask.bind(inner));
      EXPECT_EQ(allowed_cpus(), before) << "the binding thread is as it was";
    }).join();
    EXPECT_EQ(allowed_cpus(), std::vector<int>{before.front()});
  }).join();
}

TEST(CpuMask, IsRefusedWithoutAProcessorThatIsThere) {
  const std::vector<int> before = allowed_cpus();
  CpuMask mask;
  EXPECT_FALSE(mask.bind()) << "no processor at all";
  mask.add(CpuMask::max_cpus - 1);
  EXPECT_FALSE(mask.bind());
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(PinnedCaller, KeepsTheThreadOnOneProcessorWhileItLives) {
  const std::vector<int> before = allowed_cpus();
  {
    const PinnedCaller pinned(before.back());
    EXPECT_EQ(allowed_cpus(), std::vector<int>{before.back()});
  }
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(PinnedCaller, LeavesTheThreadAsItIsWhereTheSystemRefuses) {
  const std::vector<int> before = allowed_cpus();
  {
    const PinnedCaller pinned(CpuMask::max_cpus - 1);
    EXPECT_EQ(allowed_cpus(), before);
  }
  EXPECT_EQ(allowed_cpus(), before);
}

}  // namespace
}  // namespace cnn
