#include "bench/session/variable_snapshot.h"

#include <span>

namespace cnn::bench {

std::size_t VariableSnapshot::bytes() const {
  std::size_t sum = 0;
  for (const std::vector<float>& one : values) {
    sum += one.size() * sizeof(float);
  }
  return sum;
}

std::string VariableSnapshot::save() const {
  return data::save(options, tensors,
                    [this](std::size_t index) { return std::span<const float>(values[index]); })
      .string();
}

}  // namespace cnn::bench
