#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "tests/layers/cpu/own_kernels.h"
#include "tests/support/host_tensor.h"
#include "tests/support/numeric.h"

// Runs the work of one of our own kernels without a kernel table.
namespace cnn::tests {

// Runs the work and the op's loops on the same operands and expects about equal results.
template <class Work>
void expect_like_loops(const Work& work, const Op& op, const std::vector<TensorDesc>& in,
                       const std::vector<TensorDesc>& out) {
  std::vector<HostTensor> plain_in, given, expected, results;
  std::vector<TensorView> before, after;
  Operands operands;
  for (const TensorDesc& desc : in) {
    plain_in.push_back(draws(desc.shape, DataType::f32, plain_in.size()));
    pack(plain_in.back().view(), given.emplace_back(desc).view());
  }
  for (const TensorDesc& desc : out) {
    expected.emplace_back(plain(desc));
    results.emplace_back(desc);
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    before.push_back(plain_in[i].view());
    operands.in.push_back(given[i].view());
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    after.push_back(expected[i].view());
    operands.out.push_back(results[i].view());
  }
  HostTensor workspace({.shape = {static_cast<std::int64_t>(work.workspace() / sizeof(float))}});
  operands.workspace = {workspace.view().data, work.workspace()};
  work(operands);
  EXPECT_TRUE(workspace.guard_is_intact());
  op.reference(before, after);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const HostTensor result(plain(out[i]));
    unpack(results[i].view(), result.view());
    EXPECT_TRUE(results[i].guard_is_intact());
    const auto text = difference(after[i], result.view(), 1e-4);
    EXPECT_FALSE(text) << op.name() << ", output " << i << ": " << *text;
  }
}

}  // namespace cnn::tests
