#pragma once

#include <string>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/tensor.h"

namespace cnn::tests {

// A backend under test: its kernels without the fallback, its image layout and its compute type.
struct Backend {
  std::string name;
  KernelTable table;
  Layout image = Layout::nchw;
  DataType compute = DataType::f32;
};

std::vector<Backend> all_backends();

}  // namespace cnn::tests
