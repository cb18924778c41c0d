// Replaces malloc and its relatives in this binary by functions that count, for all threads and
// libraries. Sanitizer builds leave this file out because sanitizers replace malloc too.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

#include "runtime/executor.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_step.h"

namespace {

std::atomic<std::size_t>& allocations() {
  static std::atomic<std::size_t> count = 0;
  return count;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): glibc's names for its
// own allocator
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t align, std::size_t bytes);

void* malloc(std::size_t bytes) noexcept {
  ++allocations();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++allocations();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) noexcept {
  ++allocations();
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t align, std::size_t bytes) noexcept {
  ++allocations();
  return __libc_memalign(align, bytes);
}
int posix_memalign(void** result, std::size_t align, std::size_t bytes) noexcept {
  ++allocations();
  *result = __libc_memalign(align, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace cnn {
namespace {

TEST(Allocations, AreCountedOnAllThreads) {
  const std::size_t before = allocations();
  std::unique_ptr<int> mine;
  std::unique_ptr<int> other;
  std::thread thread([&] { other = std::make_unique<int>(1); });
  mine = std::make_unique<int>(2);
  thread.join();
  EXPECT_GE(allocations() - before, 2U);
  EXPECT_EQ(*mine + *other, 3);
}

TEST(Executor, AllocatesNothingInAStep) {
  const KernelTable table = tests::test_kernels({.workspace = 100});
  int kept = 0;
  tests::TestStep step(
      tests::with_random_edits(make_plan(tests::random_graph(6), table), 6, 30, kept), table);
  ASSERT_GT(kept, 3) << "swaps and recomputations, on all lanes";
  step.run();
  const std::size_t before = allocations();
  for (int i = 0; i < 5; ++i) {
    step.run();
  }
  EXPECT_EQ(allocations() - before, 0U);
}

TEST(Executor, AllocatesNothingWhileItWaitsForSlowCopies) {
  const KernelTable table = tests::test_kernels({.longest_delay = std::chrono::microseconds(200)});
  tests::TestStep step(make_plan(tests::random_graph(7), table), table,
                       {.link = {.out = 1e6, .in = 1e6}});
  step.run();
  const std::size_t before = allocations();
  step.run();
  EXPECT_EQ(allocations() - before, 0U);
}

}  // namespace
}  // namespace cnn
