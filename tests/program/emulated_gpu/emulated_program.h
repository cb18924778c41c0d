#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/program/program.h"

// The unchanged program with the unchanged sources of the CUDA backend, on the emulated GPU.
namespace cnn::tests {

using Words = std::vector<std::string>;

Words with(Words flags, const Words& more);

// The result of a training.
struct Training {
  Finished run;
  std::vector<double> base;    // losses without weight decay, one for each step
  std::string result;          // the file of --result_json
  unsigned launches = 0;       // of our kernels
  unsigned executions = 0;     // of engines, products and reductions of the libraries
  unsigned replays = 0;        // of captured steps
  std::size_t peak_bytes = 0;  // of the device's memory

  // A number of the result, by its place: "/plan/lms/swapped_tensors". NaN if there is none.
  double number(const std::string& place) const;
};

// Runs the program on device cpu or gpu and expects exit code 0. The losses of both can be
// compared: they start from the same values and images.
Training train(const std::string& device, const Words& flags);

// The same where the run may fail.
Finished run_on_gpu(const Words& flags);

// Sums in other orders make the difference. more: for the GPU only.
void expect_losses_of_the_cpu(const Words& flags, double tolerance, const Words& more = {});

// ResNet-20 on images of 16 pixels, the quickest network with batch norms: 0.3 s a step.
Words small_resnet(const Words& more);

}  // namespace cnn::tests
