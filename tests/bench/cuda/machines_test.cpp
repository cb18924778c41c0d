#include "bench/cuda/machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/cuda/cudnn/target.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

TEST(Machines, AreReadFromTheProfilesThatDescribeThemForCudnn) {
  const layers::cuda::Machine machine = machine_of(find_machine("h200"));
  EXPECT_EQ(machine.name, "H200");
  EXPECT_EQ(machine.capability, 90);
  EXPECT_EQ(machine.multiprocessors, 132);
  EXPECT_EQ(machine.memory_bytes, 150754820096U);
  EXPECT_EQ(machine_of(find_machine("A100")).capability, 80);
  EXPECT_THROW(machine_of(find_machine("p100-pcie3")), Error);
}

TEST(Machines, AreUnderstoodByCudnn) {
  for (const MachineModel& model : known_machines()) {
    if (model.cudnn) {
      EXPECT_NO_THROW(layers::cuda::Target::described(*model.cudnn)) << model.name;
    }
  }
}

TEST(Machines, AreNotReadInPart) {
  MachineModel model = find_machine("h200");
  model.cudnn = "{}";
  EXPECT_THROW(machine_of(model), Error);
}

}  // namespace
}  // namespace cnn::bench
