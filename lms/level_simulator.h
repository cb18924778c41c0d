#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lms/level_swaps.h"
#include "lms/levels.h"
#include "runtime/graph.h"

namespace cnn::lms {

// Returns the bytes of the arena that the simulation may use.
std::size_t simulated_bytes(const Request& request);

// Simulates a step level by level with reader counts, like the simulator of TFLMS 2. It counts
// bytes, but neither times, workspaces nor in-place operations: its result may err in both
// directions.
class LevelSimulator {
 public:
  // All references must outlive it.
  LevelSimulator(const Request& request, const Levels& levels, const LevelSwaps& swaps);

  struct Outcome {
    bool passed = false;           // every allocation found more than its bytes free
    std::uint64_t host_bytes = 0;  // peak on the host
  };
  Outcome play(const LevelParameters& parameters) const;

 private:
  class Play;

  const Request& request_;
  const Levels& levels_;
  const LevelSwaps& swaps_;
  std::size_t available_;
  std::vector<std::size_t> readers_;             // by TensorId of roots: number of reading nodes
  std::vector<std::vector<TensorId>> in_, out_;  // by NodeId: roots that are not persistent
};

}  // namespace cnn::lms
