#include "lms/disk_lane.h"

#include <array>
#include <gtest/gtest.h>

namespace cnn::lms {
namespace {

// Returns a problem with host bytes for three of the units below, and a disk that writes 10 and
// reads 20 bytes a second.
PlanningProblem small_host() {
  PlanningProblem result;
  result.host_bytes = 300;
  result.disk_bytes = 1000;
  result.store_bytes_per_second = 10;
  result.load_bytes_per_second = 20;
  return result;
}

constexpr std::array<std::size_t, 4> equal_swap_outs{100, 100, 100, 100};

TEST(DiskLane, TakesNoTimeWhereTheHostHoldsAll) {
  PlanningProblem plenty = small_host();
  plenty.host_bytes = 400;
  DiskLane lane(plenty);
  lane.start(equal_swap_outs);
  for (std::size_t s = 0; s < equal_swap_outs.size(); ++s) {
    EXPECT_EQ(lane.admit(s, 5), 5);
    lane.arrived(s, 6);
    EXPECT_EQ(lane.back(s), 0);
  }
  EXPECT_EQ(lane.end(), 0);
}

TEST(DiskLane, TakesNoTimeWithoutADisk) {
  PlanningProblem none = small_host();
  none.disk_bytes = 0;
  DiskLane lane(none);
  lane.start(equal_swap_outs);
  EXPECT_EQ(lane.admit(3, 5), 5);
  EXPECT_EQ(lane.back(0), 0);
}

TEST(DiskLane, StoresTheFirstUntilTheRestFitsAndWaitsForItsBytes) {
  const PlanningProblem small = small_host();
  DiskLane lane(small);
  lane.start(equal_swap_outs);
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_EQ(lane.admit(s, 1.0 + static_cast<double>(s)), 1.0 + static_cast<double>(s));
    lane.arrived(s, 2.0 + static_cast<double>(s));
  }
  EXPECT_EQ(lane.end(), 12) << "the first arrives after 2 s and takes 10 s to write";
  EXPECT_EQ(lane.admit(3, 4), 12) << "there is no room before";
}

TEST(DiskLane, LoadsOnceWhereSwapInsHaveMadeRoom) {
  const PlanningProblem small = small_host();
  DiskLane lane(small);
  lane.start(equal_swap_outs);
  for (std::size_t s = 0; s < equal_swap_outs.size(); ++s) {
    lane.arrived(s, lane.admit(s, 0));
  }
  EXPECT_EQ(lane.back(3), 0) << "it has stayed on the host";
  lane.returned(3, 30);
  lane.returned(3, 35);
  EXPECT_EQ(lane.back(0), 35) << "5 s after swap-out 3 has left the host";
  EXPECT_EQ(lane.back(0), 35);
  EXPECT_EQ(lane.end(), 35);
}

TEST(DiskLane, StartsANewStepWithNothingOnTheHost) {
  const PlanningProblem small = small_host();
  DiskLane lane(small);
  for (int step = 0; step < 2; ++step) {
    lane.start(equal_swap_outs);
    EXPECT_EQ(lane.admit(0, 0), 0);
    lane.arrived(0, 0);
    EXPECT_EQ(lane.end(), 10);
  }
}

}  // namespace
}  // namespace cnn::lms
