#pragma once

#include <string>

namespace cnn::bench {

// --comm_fault: what befalls one rank of a run that tests how the others take it.
struct FaultSpec {
  std::string what;      // "exit", "kill", "stop", "delay", "corrupt"
  int milliseconds = 0;  // of a delay
  int rank = -1;
  int bucket = 0, step = 1, after = 0;  // when: see allreduce::Fault
};

// "rank=2,what=kill" and, where not the first bucket, step and message are meant, "bucket=3",
// "step=5", "after=7"; a delay has its time: "what=delay:200ms". Throws Error: one line that names
// what is wrong.
FaultSpec parse_fault_spec(const std::string& spec);

}  // namespace cnn::bench
