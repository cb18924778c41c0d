#include "bench/plan/device_memory.h"

#include <gtest/gtest.h>
#include <memory>

#include "bench/ranks/rank_context.h"
#include "runtime/cpu/reference_kernel.h"

namespace cnn::bench {
namespace {

// Returns a program of one variable whose step takes this many bytes.
Compiled program(const char* variable, std::size_t device_bytes, std::size_t host_bytes = 0) {
  auto graph = std::make_shared<Graph>();
  graph->parameter(variable, {.shape = {16}}, {});
  Compiled compiled;
  compiled.plan.graph = std::move(graph);
  compiled.plan.memory.device_bytes = device_bytes;
  compiled.plan.memory.lower_bound_bytes = device_bytes - 10;
  compiled.plan.memory.host_bytes = host_bytes;
  return compiled;
}

Backend backend_with(std::size_t bytes) {
  Backend backend;
  backend.memory.device = bytes;
  return backend;
}

TEST(DeviceMemory, IsVariablesAndOneArenaForAllPrograms) {
  Programs programs;
  programs.main = program("w", 1000);
  programs.evaluation = program("w", 700);
  const DeviceMemory memory = device_memory(programs, only_rank(backend_with(0)));
  EXPECT_EQ(memory.variables, 64U) << "the programs share the variable";
  EXPECT_EQ(memory.arena, 1000U);
  EXPECT_EQ(memory.total(), 1064U);
  EXPECT_EQ(memory.lower_bound(), 1054U);

  programs.evaluation = program("eval_images", 1300);
  EXPECT_EQ(device_memory(programs, only_rank(backend_with(0))).total(), 128U + 1300U);
  programs.main.reset();
  EXPECT_EQ(device_memory(programs, only_rank(backend_with(0))).total(), 64U + 1300U);
}

TEST(EvaluationBytes, AreThoseOfAnEvaluationBesideAllVariables) {
  Programs programs;
  programs.main = program("w", 1000);
  EXPECT_EQ(evaluation_bytes(programs, {.variables = 64, .staged = 6, .arena = 1000}), 0U);
  programs.evaluation = program("w", 700);
  EXPECT_EQ(evaluation_bytes(programs, {.variables = 64, .staged = 6, .arena = 1000}), 770U);
}

TEST(DeviceMemory, CountsTheTransfersOfVariablesBetweenSteps) {
  auto graph = std::make_shared<Graph>();
  graph->state("images", {.shape = {1000}, .type = DataType::f16}, {}, false);
  Programs programs;
  programs.main = program("w", 1000);
  programs.main->plan.graph = graph;
  Backend backend = backend_with(0);
  backend.kernels.otherwise(
      [](const Op&, const Signature& request) {
        return KernelSpec{.workspace = 500, .in = request.in, .out = request.out};
      },
      [](const Op& op, const Signature&) { return std::make_unique<ReferenceKernel>(op); });
  EXPECT_EQ(device_memory(programs, only_rank(backend)).arena, 4032U + 500)
      << "a thousand plain values and the workspace of their conversion, more than the step takes";
  EXPECT_EQ(device_memory(programs, only_rank(backend)).lower_bound(), 2048U + 4532);
}

Compiled program_of_real_data() {
  Compiled compiled = program("w", 1000);
  auto graph = std::make_shared<Graph>();
  graph->input("global_step", {.shape = {}, .type = DataType::i32});
  graph->input("images", {.shape = {2, 5, 5, 1}, .type = DataType::u8});
  graph->input("labels", {.shape = {2}, .type = DataType::i32});
  compiled.plan.graph = std::move(graph);
  return compiled;
}

TEST(DeviceMemory, CountsTwoBatchesOfRealDataForEachProgramOnADeviceWithMemoryOfItsOwn) {
  Programs programs;
  programs.main = program_of_real_data();
  programs.evaluation = program_of_real_data();
  Backend backend = backend_with(0);
  EXPECT_EQ(device_memory(programs, only_rank(backend)).total(), 1000U);
  backend.memory.host = 0;
  EXPECT_EQ(device_memory(programs, only_rank(backend)).staged, 2 * 2 * (64U + 64U));
  EXPECT_EQ(device_memory(programs, only_rank(backend)).total(), 1000U + 512U);
  programs.evaluation = program("w", 700);
  EXPECT_EQ(device_memory(programs, only_rank(backend)).staged, 256U)
      << "synthetic images need no staging";
}

TEST(DeviceMemory, FitsWhereBothKindsDo) {
  const DeviceMemory memory{.variables = 100, .arena = 900, .arena_lower_bound = 0, .host = 400};
  Backend gpu = backend_with(1000);
  gpu.memory.host = 400;
  EXPECT_TRUE(fits(memory, only_rank(gpu)));
  gpu.memory.host = 399;
  EXPECT_FALSE(fits(memory, only_rank(gpu)));
  gpu.memory.host = 400;
  gpu.memory.device = 999;
  EXPECT_FALSE(fits(memory, only_rank(gpu)));
}

TEST(DeviceMemory, IsSharedWithTheHostByADeviceThatComputesThere) {
  const DeviceMemory memory{.variables = 100, .arena = 900, .arena_lower_bound = 0, .host = 400};
  EXPECT_TRUE(fits(memory, only_rank(backend_with(1400))));
  EXPECT_FALSE(fits(memory, only_rank(backend_with(1399))));
  EXPECT_EQ(host_bytes_left(memory, only_rank(backend_with(1100))), 100U);
  EXPECT_EQ(host_bytes_left(memory, only_rank(backend_with(500))), 0U);
}

}  // namespace
}  // namespace cnn::bench
