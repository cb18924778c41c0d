#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/graph.h"
#include "runtime/kernel.h"
#include "tests/support/host_tensor.h"

namespace cnn::tests {

// A stream that does everything at once, on the calling thread.
class ImmediateStream final : public Stream {
 public:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void host(std::function<void()> work) override { work(); }
  void record(Event& /*event*/) override {}
  void wait(Event& /*event*/) override {}
  void synchronize() override {}
};

// The results of a kernel. All tensors are plain.
struct OpRun {
  Signature signature;             // what the kernel ran in
  std::vector<HostTensor> before;  // its inputs, rounded to the types it reads
  std::vector<HostTensor> after;   // its inputs afterwards: mutated ones have changed
  std::vector<HostTensor> out;
};

// An output that lies in the place of an input.
struct InPlace {
  std::size_t input = 0, output = 0;
};

// Runs one op by the kernel of a table. `asked` as the layout pass would ask; `in` are plain
// values. Outputs and workspace start as NaN. shared: which outputs lie in the place of which
// inputs. Nothing: the table has no kernel for it, or two that are to share bytes differ in size.
// Throws Error on a write past an operand's end or between its pixels, on padding that is not zero,
// and on an input that changed although the op does not mutate it.
std::optional<OpRun> run_op(const KernelTable& table, const Op& op, const Signature& asked,
                            std::span<const TensorView> in, std::span<const InPlace> shared = {});

// A tensor in another form of the same shape, by the table's own Convert.
HostTensor converted(const KernelTable& table, const TensorView& tensor, const TensorDesc& desc);

// A tensor in the form of `desc`, and a stored one made plain again; packed forms, which only the
// kernels know, by the table's own Convert.
HostTensor stored(const KernelTable& table, const TensorView& plain_values, const TensorDesc& desc);
HostTensor opened(const KernelTable& table, const TensorView& tensor);

}  // namespace cnn::tests
