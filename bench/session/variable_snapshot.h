#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/checkpoint.h"

namespace cnn::bench {

// A copy in host memory of all variables of a checkpoint, as of the end of a step. Any thread can
// save it while the next step changes the variables.
struct VariableSnapshot {
  data::SaveOptions options;
  std::vector<data::NamedTensor> tensors;
  std::vector<std::vector<float>> values;  // of each tensor, in the order of the file

  std::size_t bytes() const;
  // Writes the checkpoint and returns its path. Throws Error.
  std::string save() const;
};

}  // namespace cnn::bench
