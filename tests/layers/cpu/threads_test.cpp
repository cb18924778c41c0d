#include "layers/cpu/threads.h"

#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <mutex>
#include <omp.h>
#include <set>
#include <thread>
#include <unistd.h>
#include <vector>

#include "layers/cpu/parallel.h"
#include "runtime/error.h"

namespace cnn::layers::cpu {
namespace {

// Runs on a thread of its own, because use_threads changes a thread for good.
template <class Work>
void on_a_thread(Work work) {
  std::thread(work).join();
}

TEST(UseThreads, GivesTheCallersTeamOneThreadPerProcessor) {
  on_a_thread([] {
    const std::vector<int> cpus = affinity_cpus();
    use_threads(cpus);
    EXPECT_EQ(omp_get_max_threads(), static_cast<int>(cpus.size()));
    use_threads(std::span(cpus).first(1));
    EXPECT_EQ(omp_get_max_threads(), 1);
  });
}

TEST(UseThreads, RefusesATeamThatOpenMpCutsShort) {
  on_a_thread([] {
    omp_set_max_active_levels(0);
    EXPECT_EQ(available_threads(2), 1);
    const std::vector<int> cpus(2, affinity_cpus().front());
    EXPECT_THROW(use_threads(cpus), Error);
    EXPECT_THROW(use_unpinned_threads(2), Error);
    EXPECT_NO_THROW(use_unpinned_threads(1));
  });
}

TEST(UseThreads, PinsEveryThreadButTheCaller) {
  on_a_thread([] {
    const std::vector<int> cpus = affinity_cpus();
    use_threads(cpus);
    std::mutex mutex;
    std::set<std::vector<int>> masks;
#pragma omp parallel
    {
      const std::lock_guard lock(mutex);
      masks.insert(omp_get_thread_num() == 0 ? std::vector<int>{} : affinity_cpus());
    }
    std::set<std::vector<int>> expected{{}};
    for (std::size_t i = 1; i < cpus.size(); ++i) {
      expected.insert({cpus[i]});
    }
    EXPECT_EQ(masks, expected);
    EXPECT_EQ(affinity_cpus(), cpus);
  });
}

TEST(UseThreads, PinsTheCallerWhenAsked) {
  on_a_thread([] {
    const std::vector<int> cpus = affinity_cpus();
    use_threads(cpus, Caller::pinned);
    EXPECT_EQ(affinity_cpus(), std::vector<int>{cpus[0]});
  });
}

TEST(UseThreads, TreatsSubnormalsAsZeroOnEveryThread) {
  on_a_thread([] {
    use_threads(affinity_cpus());
    const volatile float smallest_normal = std::numeric_limits<float>::min();
    const volatile float subnormal = std::numeric_limits<float>::denorm_min();
    std::atomic<int> flushing = 0;
#pragma omp parallel
    {
      const volatile float result = smallest_normal * 0.5F;
      const volatile float sum = subnormal * 0x1p120F;
      flushing += result == 0 && sum == 0 ? 1 : 0;
    }
    EXPECT_EQ(flushing, omp_get_max_threads());
  });
}

// Returns the thread ids by their index in the team.
std::vector<pid_t> team_of_threads(std::size_t size) {
  std::vector<pid_t> threads(size);
#pragma omp parallel
  threads.at(static_cast<std::size_t>(omp_get_thread_num())) = gettid();
  return threads;
}

TEST(ParallelFor, KeepsTheThreadsThatHaveNothingToDo) {
  on_a_thread([] {
    const std::vector<int> cpus(4, affinity_cpus().front());
    use_threads(cpus);
    const std::vector<pid_t> before = team_of_threads(cpus.size());
    std::atomic<std::int64_t> covered = 0;
    parallel_for(2, 1, [&](std::int64_t first, std::int64_t last) { covered += last - first; });
    EXPECT_EQ(covered, 2);
    EXPECT_EQ(team_of_threads(cpus.size()), before);
  });
}

TEST(UseThreads, RefusesNoProcessorAndImpossibleOnes) {
  on_a_thread([] {
    EXPECT_THROW(use_threads({}), Error);
    EXPECT_THROW(use_threads(std::vector<int>{-1}), Error);
    EXPECT_THROW(use_threads(std::vector<int>{8191}), Error);
  });
}

}  // namespace
}  // namespace cnn::layers::cpu
