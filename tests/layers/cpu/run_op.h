#pragma once

#include <vector>

#include "runtime/kernel.h"
#include "tests/support/host_tensor.h"

// Runs single ops on tensors written as plain lists of floats, by a kernel table and by their
// reference loops.
namespace cnn::test {

// A tensor of a test: its real type, and its values as f32, also for u8 and i32.
struct Values {
  TensorDesc desc;
  std::vector<float> data;
};

// Returns values in [-1, 1] rounded to the type; equal seeds give equal values.
Values random_values(Shape shape, DataType type, unsigned seed);

// These convert between plain f32 and the bytes of desc by the table's Convert kernels.
tests::HostTensor pack(const KernelTable& table, const Values& values, const TensorDesc& desc);
Values unpack(const KernelTable& table, const tests::HostTensor& stored);

struct Ran {
  Signature signature;  // the signature that the kernel accepted
  std::vector<Values> out;
};

// Requests the layout `image` for images from the table and runs the kernel as tests::run_op does.
Ran run_fast(const KernelTable& table, const Op& op, const std::vector<Values>& in, Layout image);
std::vector<Values> run_reference(const Op& op, const std::vector<Values>& in);

// Returns the largest difference relative to the largest expected value.
double distance(const Values& got, const Values& expected);

}  // namespace cnn::test
