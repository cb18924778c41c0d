#pragma once

#include <string>

#include "bench/plan/device_memory.h"

namespace cnn::bench {

struct Job;
struct RankContext;

// Returns the flag that sets the batch of the program with the largest arena, with its value:
// "--eval_batch_size=64" of an evaluation with a batch of its own, else "--batch_size=64".
std::string batch_flag(const Job& job, const Programs& programs);

// Returns why the programs do not fit in the memory of the device or the host: TensorFlow's line of
// that, then the bytes needed, the bytes available and the largest batch that fits. Empty if they
// fit. memory: of the programs.
std::string memory_refusal(const Job& job, const Programs& programs, const DeviceMemory& memory,
                           const RankContext& context);

}  // namespace cnn::bench
