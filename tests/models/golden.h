#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cnn::tests {

// Reads a file of tests/golden: the reference values that tf_cnn_benchmarks computed for one
// network. tests/support/formula.h makes the weights, images and labels.
struct Golden {
  struct Gradient {
    double norm = 0;           // L2 norm
    std::vector<double> head;  // first elements, in the order of checkpoints
  };

  std::string model, data_set, optimizer;
  bool training = true;
  std::int64_t batch_size = 0, image_size = 0;
  std::uint64_t seed = 0;
  double weight_decay = 0, learning_rate = 0;
  std::vector<std::int32_t> labels;
  std::vector<double> logits_head;
  double logits_norm = 0;
  std::vector<std::int64_t> argmax;           // present for evaluation only
  std::vector<double> total_loss, base_loss;  // one value per step
  std::vector<double> tolerance;              // relative, one value per step
  double gradient_tolerance = 0;              // relative
  std::map<std::string, Gradient> gradients;  // of the total loss, before the first update
  std::map<std::string, double> after;        // norm of every variable after the last step
};

// name: the file's name without its extension.
Golden read_golden(std::string_view name);

}  // namespace cnn::tests
