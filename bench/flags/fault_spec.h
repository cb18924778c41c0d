#pragma once

#include <optional>
#include <string>

namespace cnn::bench {

// --comm_fault: the fault to inject into one rank, to test how the other ranks react.
struct FaultSpec {
  std::string what;      // "exit", "kill", "stop", "delay", "corrupt", "flip"
  int milliseconds = 0;  // of a delay
  int rank = -1;
  // When to inject: see allreduce::Fault; of a flip: the global step.
  int bucket = 0, step = 1, after = 0;
  std::string tensor;  // of a flip; empty: one in the middle of the step
};

// Parses "rank=2,what=kill" with optional "bucket=3", "step=5", "after=7" instead of the first
// bucket, step and message. A delay has its time: "what=delay:200ms". A bit flip has its step and
// may have "tensor=conv#15:0". Throws Error: one line that names the mistake.
FaultSpec parse_fault_spec(const std::string& spec);

// Returns whether the fault flips a bit, which needs no gradient exchange; false for an invalid
// spec.
bool flips_a_bit(const std::optional<std::string>& spec);

}  // namespace cnn::bench
