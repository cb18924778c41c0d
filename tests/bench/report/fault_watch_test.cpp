#include "bench/report/fault_watch.h"

#include <gtest/gtest.h>
#include <string>

namespace cnn::bench {
namespace {

// Returns the stderr lines of a run of five steps, warm-up included, that began at a global step.
std::string notes_of_fault(const std::string& spec, std::int64_t began_at) {
  Console console;
  FaultWatch watch(console, spec);
  for (int step = -1; step <= 3; ++step) {
    watch.step_finished({.number = step});
  }
  testing::internal::CaptureStderr();
  watch.end({.timed_steps = 3, .global_step = began_at + 5});
  return testing::internal::GetCapturedStderr();
}

TEST(FaultWatch, SaysThatTheRunEndedBeforeTheStep) {
  EXPECT_EQ(notes_of_fault("rank=1,what=delay:1ms,step=6", 100),
            "--comm_fault=rank=1,what=delay:1ms,step=6: nothing was injected, for the run had "
            "the steps, warm-up included, 1 to 5\n");
  EXPECT_EQ(notes_of_fault("rank=1,what=delay:1ms,step=5", 100), "");
  EXPECT_EQ(notes_of_fault("rank=1,what=corrupt", 100), "");
}

TEST(FaultWatch, ComparesTheGlobalStepOfABitFlip) {
  EXPECT_EQ(notes_of_fault("rank=0,what=flip,step=5", 100),
            "--comm_fault=rank=0,what=flip,step=5: nothing was injected, for the run had the "
            "global steps 101 to 105\n");
  EXPECT_EQ(notes_of_fault("rank=0,what=flip,step=101", 100), "");
  EXPECT_EQ(notes_of_fault("rank=0,what=flip,step=105", 100), "");
  EXPECT_NE(notes_of_fault("rank=0,what=flip,step=106", 100), "");
}

}  // namespace
}  // namespace cnn::bench
