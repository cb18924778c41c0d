#include "bench/machine/machine_info.h"

#include <gtest/gtest.h>

namespace cnn::bench {
namespace {

TEST(MachineInfo, ReadsTheSystemsTexts) {
  const MachineInfo info = parse_machine_info(
      "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\ncpu MHz\t\t: 2100.5\n\n"
      "processor\t: 1\nmodel name\t: Some CPU @ 2.00GHz\ncpu MHz\t\t: 1800.0\n",
      "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\n");
  EXPECT_EQ(info.cpu_name, "Some CPU @ 2.00GHz");
  EXPECT_EQ(info.processors, 2);
  EXPECT_EQ(info.mhz, 2100.5);
  EXPECT_EQ(info.memory_total, 16777216);
  EXPECT_EQ(info.memory_available, 8388608);
}

TEST(MachineInfo, SaysUnknownIfTheSystemTellsNothing) {
  const MachineInfo info = parse_machine_info("", "MemTotal: many kB");
  EXPECT_EQ(info.cpu_name, "unknown");
  EXPECT_EQ(info.processors, 0);
  EXPECT_EQ(info.memory_total, 0);
}

TEST(MachineInfo, KnowsThisMachine) {
  EXPECT_GE(read_machine_info().processors, 1);
  EXPECT_GT(read_machine_info().memory_total, 1 << 20);
  EXPECT_GT(process_peak_bytes().value(), 1 << 20);
}

}  // namespace
}  // namespace cnn::bench
