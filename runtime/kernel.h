#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "runtime/op.h"
#include "runtime/tensor.h"

namespace cnn {

// The types and layouts of a node's operands: what is asked of a kernel, and what a kernel was made
// for.
struct Signature {
  std::vector<TensorDesc> in, out;
};
std::string to_string(const Signature& signature);  // "(f32[2, 3] nchw) -> (f32[2, 3] nchw)"

// Resolved once when a program is linked; outlives every run.
struct Operands {
  std::vector<TensorView> in, out;
  std::span<std::byte> workspace;  // 64-byte aligned, contents undefined
};

// Made once when a program is compiled, run every step, never allocates. Lives on one device.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(Stream& stream, const Operands& operands) = 0;  // enqueues and returns
};

// The origin of a kernel's code: the loops that define the op, ours, or a library's.
enum class Provider : std::uint8_t { loops, own, onednn, cudnn, cublas };

// The needs and preferences of a kernel: pure data, known without a device or a driver.
struct KernelSpec {
  std::size_t workspace = 0;        // bytes; enters the memory plan
  std::vector<TensorDesc> in, out;  // layouts and types it runs in, given what was asked
  // Bytes that it moves because it runs in several passes, beyond what its op makes necessary: of
  // what one pass writes and the next reads. For predictions only.
  std::size_t extra_traffic = 0;
  // Floating-point operations of its algorithm, where that needs fewer than its op counts.
  std::optional<double> flops = std::nullopt;
  Provider by = Provider::own;  // set by the table, from the row
};

// The kernels that one backend can run, keyed by the op's type.
class KernelTable {
 public:
  using Describe = std::function<std::optional<KernelSpec>(const Op&, const Signature&)>;
  using Make = std::function<std::unique_ptr<Kernel>(const Op&, const Signature&)>;

  // describe: (const O&, const Signature&) -> optional<KernelSpec>. The signature asked has the
  // true shapes and types, and for each operand the layout it has or would best have; the spec
  // answers with the layouts (and, for weights, packings and types) the kernel really takes.
  // Nothing: this backend cannot run it so. make: (const O&, const Signature&) ->
  // unique_ptr<Kernel> for a signature that equals a spec's in and out. The first of several rows
  // of one op that describes something serves.
  template <std::derived_from<Op> O, class DescribeOp, class MakeOp>
  void add(DescribeOp describe_op, MakeOp make_op, Provider by = Provider::own) {
    rows_[std::type_index(typeid(O))].push_back({[describe_op](const Op& op, const Signature& s) {
                                                   return describe_op(static_cast<const O&>(op), s);
                                                 },
                                                 [make_op](const Op& op, const Signature& s) {
                                                   return make_op(static_cast<const O&>(op), s);
                                                 },
                                                 by});
  }
  // Serves every op without a row, and every op whose rows describe nothing; but none that is not
  // local (see Op).
  void otherwise(Describe describe, Make make, Provider by = Provider::own);

  std::optional<KernelSpec> describe(const Op& op, const Signature& asked) const;
  // Throws Error that names the op and the signature if no kernel can run it.
  std::unique_ptr<Kernel> make(const Op& op, const Signature& signature) const;

 private:
  struct Row {
    Describe describe;
    Make make;
    Provider by{};
  };
  const Row* row_for(const Op& op, const Signature& asked, std::optional<KernelSpec>& spec) const;

  std::unordered_map<std::type_index, std::vector<Row>> rows_;
  std::optional<Row> otherwise_;
};

}  // namespace cnn
