#pragma once

#include <optional>
#include <string>

namespace cnn::bench {

// --comm_fault: the fault that is injected into one rank, so that a test can see how the others
// take it.
struct FaultSpec {
  std::string what;      // "exit", "kill", "stop", "delay", "corrupt", "flip"
  int milliseconds = 0;  // of a delay
  int rank = -1;
  int bucket = 0, step = 1, after = 0;  // when: see allreduce::Fault; of a flip: the global step
  std::string tensor;                   // of a flip; empty: one in the middle of the step
};

// "rank=2,what=kill" and, where not the first bucket, step and message are meant, "bucket=3",
// "step=5", "after=7"; a delay has its time: "what=delay:200ms". A flip of a bit has its step and
// may have "tensor=conv#15:0". Throws Error: one line that names what is wrong.
FaultSpec parse_fault_spec(const std::string& spec);

// Whether it flips a bit, which needs no exchange of gradients; false for a spec that is wrong.
bool flips_a_bit(const std::optional<std::string>& spec);

}  // namespace cnn::bench
