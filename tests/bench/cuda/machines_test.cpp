#include "bench/cuda/machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/cuda/library/target.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

TEST(Machines, AreReadFromTheProfilesThatDescribeThemForCudnn) {
  const layers::cuda::Machine machine = machine_of(find_profile("h200"));
  EXPECT_EQ(machine.name, "H200");
  EXPECT_EQ(machine.capability, 90);
  EXPECT_EQ(machine.multiprocessors, 132);
  EXPECT_EQ(machine.memory_bytes, 150754820096U);
  EXPECT_EQ(machine_of(find_profile("A100")).capability, 80);
  EXPECT_THROW(machine_of(find_profile("p100-pcie3")), Error);
}

TEST(Machines, AreUnderstoodByCudnn) {
  for (const Profile& profile : known_profiles()) {
    if (profile.cudnn) {
      EXPECT_NO_THROW(layers::cuda::Target::described(*profile.cudnn)) << profile.name;
    }
  }
}

TEST(Machines, AreNotReadInPart) {
  Profile profile = find_profile("h200");
  profile.cudnn = "{}";
  EXPECT_THROW(machine_of(profile), Error);
}

}  // namespace
}  // namespace cnn::bench
