#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/program/program.h"

// Runs the unchanged program with the unchanged CUDA backend on the emulated GPU.
namespace cnn::tests {

using Words = std::vector<std::string>;

Words with(Words flags, const Words& more);

// The result of a training run.
struct Training {
  Finished run;
  std::vector<double> base;    // losses without weight decay, one per step
  std::string result;          // content of the --result_json file
  unsigned launches = 0;       // of our kernels
  unsigned executions = 0;     // of the libraries' engines, matrix products and reductions
  unsigned replays = 0;        // of captured steps
  std::size_t peak_bytes = 0;  // peak of the device's memory

  // Returns the number at a JSON pointer of the result, such as "/plan/lms/swapped_tensors", or NaN
  // if there is none.
  double number(const std::string& place) const;
};

// Runs the program on device cpu or gpu and expects exit code 0. Both start from the same values
// and images, so their losses can be compared.
Training train(const std::string& device, const Words& flags);

// Runs the program on the emulated GPU; the run may fail.
Finished run_on_gpu(const Words& flags);

// Expects the CPU's losses from the GPU. The tolerance allows for different orders of sums. more:
// flags for the GPU only.
void expect_losses_of_the_cpu(const Words& flags, double tolerance, const Words& more = {});

// Returns flags of ResNet-20 on images of 16 pixels, the fastest network with batch norms at 0.3 s
// per step.
Words small_resnet(const Words& more);

}  // namespace cnn::tests
