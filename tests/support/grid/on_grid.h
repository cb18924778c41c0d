#pragma once

#include <memory>
#include <utility>

#include "runtime/kernel.h"
#include "tests/support/grid/grid.h"

namespace cnn::tests::grid {

// Runs a kernel in one order of the grid, whatever stream it is given.
class OnGrid final : public Kernel {
 public:
  OnGrid(std::unique_ptr<Kernel> kernel, Order order) : kernel_(std::move(kernel)), order_(order) {}
  void run(Stream& /*stream*/, const Operands& operands) override {
    GridStream stream(order_);
    kernel_->run(stream, operands);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  Order order_;
};

// Returns the table's kernels, each of which runs in this order.
inline KernelTable in_order(KernelTable table, Order order) {
  const auto all = std::make_shared<const KernelTable>(std::move(table));
  KernelTable result;
  result.otherwise(
      [all](const Op& op, const Signature& request) { return all->describe(op, request); },
      [all, order](const Op& op, const Signature& signature) {
        return std::make_unique<OnGrid>(all->make(op, signature), order);
      });
  return result;
}

}  // namespace cnn::tests::grid
