#include "bench/cuda/machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/cuda/library/target.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using layers::cuda::Machine;

TEST(Machines, AreInTheProgram) {
  std::vector<std::string> names;
  for (const Machine& machine : known_machines()) {
    names.push_back(machine.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"A100", "H100", "H200"}));
}

TEST(Machines, AreFoundInAnyCase) {
  const Machine machine = find_machine("h200");
  EXPECT_EQ(machine.name, "H200");
  EXPECT_EQ(machine.capability, 90);
  EXPECT_EQ(machine.multiprocessors, 132);
  EXPECT_EQ(machine.bandwidth, 4.3e12);
  EXPECT_EQ(machine.flops(DataType::bf16, false), 790e12);
  EXPECT_EQ(machine.flops(DataType::f32, false), 395e12);
  EXPECT_EQ(machine.flops(DataType::f32, true), 60e12);
  EXPECT_EQ(find_machine("A100").capability, 80);
}

TEST(Machines, SayWhereTheirFiguresComeFrom) {
  for (const Machine& machine : known_machines()) {
    EXPECT_THAT(machine.source,
                testing::AnyOf(testing::HasSubstr("measured"), testing::HasSubstr("estimated")));
  }
}

TEST(Machines, AreListedToWhoAsksForAnother) {
  try {
    find_machine("v100");
    FAIL() << "found a V100";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "there is no description of a machine called 'v100'; there are a100, h100, h200");
  }
}

TEST(Machines, AreRecognisedByTheNameOfADevice) {
  const std::vector<Machine> machines = known_machines();
  ASSERT_NE(machine_like(machines, "NVIDIA H100 80GB HBM3"), nullptr);
  EXPECT_EQ(machine_like(machines, "NVIDIA H100 80GB HBM3")->name, "H100");
  EXPECT_EQ(machine_like(machines, "NVIDIA GeForce GTX 1080"), nullptr);
}

TEST(Machines, AreUnderstoodByCudnn) {
  for (const Machine& machine : known_machines()) {
    EXPECT_NO_THROW(layers::cuda::Target::described(machine.device_json)) << machine.name;
  }
}

TEST(Machines, AreNotReadInPart) {
  EXPECT_THROW(read_machine("{}"), Error);
  EXPECT_THROW(read_machine("{"), Error);
}

}  // namespace
}  // namespace cnn::bench
