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

// Plays a step level by level, counting readers, as the simulator of TFLMS 2 does. It knows bytes,
// but no times, no workspaces and nothing of operations in place: it may be wrong either way.
class LevelSimulator {
 public:
  // All must outlive it.
  LevelSimulator(const Request& request, const Levels& levels, const LevelSwaps& swaps);

  struct Outcome {
    bool passed = false;           // every allocation found more than its bytes free
    std::uint64_t host_bytes = 0;  // the most that lay on the host at a time
  };
  Outcome play(const LevelParameters& parameters) const;

 private:
  class Play;

  const Request& request_;
  const Levels& levels_;
  const LevelSwaps& swaps_;
  std::size_t available_;
  std::vector<std::size_t> readers_;             // by TensorId of roots: nodes that read them
  std::vector<std::vector<TensorId>> in_, out_;  // by NodeId: roots of what is not persistent
};

}  // namespace cnn::lms
