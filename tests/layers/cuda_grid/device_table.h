#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "layers/cuda/own_kernels.h"
#include "tests/layers/device_loops.h"
#include "tests/support/grid/on_grid.h"

// Stands in for the CUDA backend on machines without a GPU: our CUDA kernels run on the emulated
// grid, reference loops replace the libraries.
namespace cnn::tests {

// Runs a kernel on the emulated grid as part of the stream's work.
class InStream final : public Kernel {
 public:
  explicit InStream(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  void run(Stream& stream, const Operands& operands) override {
    stream.host([this, &operands] {
      grid::GridStream grid(grid::Order{});
      kernel_->run(grid, operands);
    });
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

inline KernelTable device_table() {
  auto own = std::make_shared<KernelTable>();
  layers::cuda::add_own_kernels(*own);
  KernelTable table;
  table.otherwise(
      [own](const Op& op, const Signature& request) {
        const std::optional<KernelSpec> spec = own->describe(op, request);
        return spec ? *spec : as_libraries_take(request);
      },
      [own](const Op& op, const Signature& signature) -> std::unique_ptr<Kernel> {
        if (own->describe(op, signature)) {
          return std::make_unique<InStream>(own->make(op, signature));
        }
        return std::make_unique<DeviceLoops>(op);
      });
  return table;
}

}  // namespace cnn::tests
