#pragma once

#include <string>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/tensor.h"

namespace cnn::tests {

// One way to run a graph: kernels without the fallback, the layout of images, the compute type.
struct Backend {
  std::string name;
  KernelTable table;
  Layout image = Layout::nchw;
  DataType compute = DataType::f32;
};

std::vector<Backend> all_backends();

}  // namespace cnn::tests
