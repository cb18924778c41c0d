#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/graph.h"
#include "runtime/kernel.h"
#include "tests/support/host_tensor.h"

namespace cnn::tests {

// A stream that runs everything at once on the calling thread.
class ImmediateStream final : public Stream {
 public:
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void host(std::function<void()> work) override { work(); }
  void record(Event& /*event*/) override {}
  void wait(Event& /*event*/) override {}
  void synchronize() override {}
};

// The results of running a kernel; all tensors are plain.
struct OpRun {
  Signature signature;             // the signature that the kernel accepted
  std::vector<HostTensor> before;  // its inputs, rounded to the types that it reads
  std::vector<HostTensor> after;   // its inputs afterwards, some of them changed
  std::vector<HostTensor> out;
};

// A pair of an input and an output that share their bytes.
struct InPlace {
  std::size_t input = 0, output = 0;
};

// Runs one op by a table's kernel. request: the signature that the layout pass would request. in:
// plain values. shared: the outputs that overwrite inputs. Outputs and workspace start as NaN.
// Returns nothing if the table has no kernel or if an input and output to share differ in size.
// Throws Error for a write past an operand's end or between its pixels, for padding that is not
// zero, and for a changed input that the op does not mutate.
std::optional<OpRun> run_op(const KernelTable& table, const Op& op, const Signature& request,
                            std::span<const TensorView> in, std::span<const InPlace> shared = {});

// Returns a tensor in another form of the same shape, by the table's own Convert.
HostTensor converted(const KernelTable& table, const TensorView& tensor, const TensorDesc& desc);

// Convert a plain tensor to the form of `desc`, and a stored one to plain. Packed forms use the
// table's own Convert, because only kernels know them.
HostTensor stored(const KernelTable& table, const TensorView& plain_values, const TensorDesc& desc);
HostTensor opened(const KernelTable& table, const TensorView& tensor);

}  // namespace cnn::tests
