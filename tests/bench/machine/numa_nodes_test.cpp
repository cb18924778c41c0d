#include "bench/machine/numa_nodes.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void write_node(const tests::TemporaryFolder& root, int node, const std::string& cpus) {
  root.write("sys/devices/system/node/node" + std::to_string(node) + "/cpulist", cpus + "\n");
}

TEST(CpuList, IsReadAsTheKernelWritesIt) {
  EXPECT_THAT(parse_cpu_list("0-3,8,10-11\n"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(parse_cpu_list("5"), ElementsAre(5));
  for (const char* const wrong : {"", "\n", "a", "1-", "-2", "1,,2", "1 2", "0-99999999", "3,"}) {
    EXPECT_THAT(parse_cpu_list(wrong), IsEmpty()) << wrong;
  }
}

TEST(FirstNumaNode, HasThoseOfTheProcessorsThatItKeeps) {
  const tests::TemporaryFolder root;
  write_node(root, 10, "0-3");
  write_node(root, 2, "4-7,12-15");
  write_node(root, 0, "");  // a node with memory but no processors
  EXPECT_THAT(on_first_numa_node(std::array{0, 5, 6, 13}, root.path()), ElementsAre(5, 6, 13));
  EXPECT_THAT(on_first_numa_node(std::array{1, 3}, root.path()), ElementsAre(1, 3));
  EXPECT_THAT(on_first_numa_node(std::array{20, 21}, root.path()), ElementsAre(20, 21));
  const tests::TemporaryFolder silent;
  EXPECT_THAT(on_first_numa_node(std::array{0, 1}, silent.path()), ElementsAre(0, 1));
}

TEST(NumaNode, HasAllProcessors) {
  const tests::TemporaryFolder root;
  write_node(root, 0, "0-3,8-11");
  write_node(root, 1, "4-7,12-15");
  write_node(root, 2, "");  // a node with memory but no processors
  root.write("sys/devices/system/node/online", "0-2\n");
  root.write("sys/devices/system/node/nodes/cpulist", "0-15\n");
  EXPECT_EQ(numa_node_of(std::array{0, 9}, root.path()), 0);
  EXPECT_EQ(numa_node_of(std::array{12}, root.path()), 1);
  EXPECT_EQ(numa_node_of(std::array{3, 4}, root.path()), std::nullopt);
  EXPECT_EQ(numa_node_of(std::array{16}, root.path()), std::nullopt);
  EXPECT_EQ(numa_node_of({}, root.path()), std::nullopt);
}

TEST(NumaNode, IsUnknownWhereTheSystemDoesNotTell) {
  const tests::TemporaryFolder root;
  EXPECT_EQ(numa_node_of(std::array{0}, root.path()), std::nullopt);
}

}  // namespace
}  // namespace cnn::bench
