#include "bench/machine/caches.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One index folder of a processor in sysfs.
struct Cache {
  int cpu = 0, index = 0;
  std::string level, type, size, shared;
};

void write(const tests::TemporaryFolder& root, const Cache& cache) {
  const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cache.cpu) +
                             "/cache/index" + std::to_string(cache.index) + "/";
  root.write(folder + "level", cache.level + "\n");
  root.write(folder + "type", cache.type + "\n");
  root.write(folder + "size", cache.size + "\n");
  root.write(folder + "shared_cpu_list", cache.shared + "\n");
}

TEST(CacheBytes, CountACacheThatProcessorsShareOnce) {
  const tests::TemporaryFolder root;
  for (const int cpu : {0, 1}) {
    write(root, {cpu, 0, "1", "Data", "32K", std::to_string(cpu)});
    write(root, {cpu, 1, "1", "Instruction", "32K", std::to_string(cpu)});
    write(root, {cpu, 2, "2", "Unified", "512K", std::to_string(cpu)});
    write(root, {cpu, 3, "3", "Unified", "32768K", "0-1"});
  }
  EXPECT_THAT(cache_bytes(std::array{0, 1}, root.path()), ElementsAre(1 << 20, 32 << 20));
  EXPECT_THAT(cache_bytes(std::array{1}, root.path()), ElementsAre(512 << 10, 32 << 20));
}

TEST(CacheBytes, LeaveOutALevelThatIsNoLarger) {
  const tests::TemporaryFolder root;
  write(root, {0, 0, "2", "Unified", "2M", "0"});
  write(root, {0, 1, "3", "Unified", "1M", "0-7"});
  EXPECT_THAT(cache_bytes(std::array{0}, root.path()), ElementsAre(2 << 20));
}

TEST(CacheBytes, AreNoneWhereTheSystemTellsNothing) {
  const tests::TemporaryFolder root;
  EXPECT_THAT(cache_bytes(std::array{0}, root.path()), IsEmpty());
  EXPECT_EQ(parse_cache_size("many"), 0);
  EXPECT_EQ(parse_cache_size("4X"), 0);
  EXPECT_EQ(parse_cache_size("4096"), 4096);
}

}  // namespace
}  // namespace cnn::bench
