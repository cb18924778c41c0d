#pragma once

#include <vector>

#include "runtime/kernel.h"
#include "tests/support/host_tensor.h"

// Single ops on tensors written as plain lists of floats, through a kernel table and through their
// reference loops.
namespace cnn::test {

// A tensor as the test knows it: its true type, its values as plain f32 (u8 and i32 as floats).
struct Values {
  TensorDesc desc;
  std::vector<float> data;
};

// Draws in [-1, 1], rounded to the type; equal for equal seeds.
Values random_values(Shape shape, DataType type, unsigned seed);

// Bytes in the order of desc -> plain f32 and back, through the table's Convert.
tests::HostTensor pack(const KernelTable& table, const Values& values, const TensorDesc& desc);
Values unpack(const KernelTable& table, const tests::HostTensor& stored);

struct Ran {
  Signature signature;  // what the kernel ran in
  std::vector<Values> out;
};

// Asks the table with images in `image` and runs the kernel as tests::run_op does.
Ran run_fast(const KernelTable& table, const Op& op, const std::vector<Values>& in, Layout image);
std::vector<Values> run_reference(const Op& op, const std::vector<Values>& in);

// Largest difference, relative to the largest value expected.
double distance(const Values& got, const Values& expected);

}  // namespace cnn::test
