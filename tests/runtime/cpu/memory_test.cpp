#include "runtime/cpu/memory.h"

#include <gtest/gtest.h>
#include <string>

#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn {
namespace {

namespace fs = std::filesystem;

// A fake root folder with proc and sys.
class AvailableMemory : public ::testing::Test {
 public:
  AvailableMemory() {
    write("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    5000 kB\nCached: 1 kB\n");
  }

 protected:
  void write(const std::string& file, const std::string& text) const { root_.write(file, text); }
  std::size_t available() const { return available_memory(root_.path()); }

 private:
  tests::TemporaryFolder root_;
};

constexpr std::size_t kib = 1024;

TEST_F(AvailableMemory, IsWhatTheKernelSaysWithoutGroups) { EXPECT_EQ(available(), 5000 * kib); }

TEST_F(AvailableMemory, ThrowsIfTheKernelSaysNothing) {
  write("proc/meminfo", "MemTotal: 9000 kB\n");
  EXPECT_THROW(available(), Error);
}

TEST_F(AvailableMemory, IsWhatAGroupOfVersion2LeavesWithoutItsCache) {
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/memory.max", "1048576\n");
  write("sys/fs/cgroup/job/memory.current", "500000\n");
  EXPECT_EQ(available(), 548576U);
  write("sys/fs/cgroup/job/memory.stat", "anon 5\nactive_file 7\ninactive_file 100000\n");
  EXPECT_EQ(available(), 648576U);
}

TEST_F(AvailableMemory, LooksAtGroupsAboveToo) {
  write("proc/self/cgroup", "0::/slice/job\n");
  write("sys/fs/cgroup/slice/memory.max", "1000000\n");
  write("sys/fs/cgroup/slice/memory.current", "900000\n");
  write("sys/fs/cgroup/slice/job/memory.max", "max\n");
  write("sys/fs/cgroup/slice/job/memory.current", "100\n");
  EXPECT_EQ(available(), 100000U);
}

TEST_F(AvailableMemory, LooksAtTheMountWhereThePathIsOutsideTheContainer) {
  write("proc/self/cgroup", "0::/../../unseen\n");
  write("sys/fs/cgroup/memory.max", "3000000\n");
  write("sys/fs/cgroup/memory.current", "1000000\n");
  EXPECT_EQ(available(), 2000000U);
}

TEST_F(AvailableMemory, IsWhatAGroupOfVersion1Leaves) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/docker\n");
  write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "2000000\n");
  write("sys/fs/cgroup/memory/docker/memory.usage_in_bytes", "500000\n");
  EXPECT_EQ(available(), 1500000U);
}

TEST_F(AvailableMemory, IsNothingInAGroupThatIsFull) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1000\n");
  write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(available(), 0U);
}

TEST(AvailableMemoryHere, IsPlausible) { EXPECT_GT(available_memory(), std::size_t{1} << 20U); }

}  // namespace
}  // namespace cnn
