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

// The types and layouts of a node's operands, as requested of a kernel or fixed when a kernel was
// made.
struct Signature {
  std::vector<TensorDesc> in, out;
};
std::string to_string(const Signature& signature);  // "(f32[2, 3] nchw) -> (f32[2, 3] nchw)"

// Resolved once when a program is linked; outlives every run.
struct Operands {
  std::vector<TensorView> in, out;
  std::span<std::byte> workspace;  // 64-byte aligned, contents undefined
};

// Made once when a program is compiled and run every step; never allocates. Belongs to one device.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(Stream& stream, const Operands& operands) = 0;  // enqueues and returns
};

// The origin of a kernel's code: the op's defining loops, our own kernel, or a library.
enum class Provider : std::uint8_t { loops, own, onednn, cudnn, cublas };

// The requirements of a kernel as pure data: known without a device or a driver.
struct KernelSpec {
  std::size_t workspace = 0;        // bytes; enters the memory plan
  std::vector<TensorDesc> in, out;  // layouts and types the kernel takes, given the request
  // Memory traffic of several passes beyond the op's necessary traffic, in bytes: data that one
  // pass writes and the next reads. For predictions only.
  std::size_t extra_traffic = 0;
  // Floating-point operations of the kernel's algorithm, if fewer than Op::flops.
  std::optional<double> flops = std::nullopt;
  Provider by = Provider::own;  // set by the table, from the row
};

// The kernels that one backend can run, keyed by the op's type.
class KernelTable {
 public:
  using Describe = std::function<std::optional<KernelSpec>(const Op&, const Signature&)>;
  using Make = std::function<std::unique_ptr<Kernel>(const Op&, const Signature&)>;

  // describe: (const O&, const Signature&) -> optional<KernelSpec>. The request has the true shapes
  // and types, and each operand's current or preferred layout; the spec answers with the layouts
  // (and, for weights, packings and types) that the kernel takes. Nothing: this backend cannot run
  // the request. make: (const O&, const Signature&) -> unique_ptr<Kernel> for a signature that
  // equals a spec's in and out. The table uses the first row of an op that describes a request.
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
  // Sets the fallback for every local op (see Op) without a row, or whose rows describe nothing.
  void otherwise(Describe describe, Make make, Provider by = Provider::own);

  std::optional<KernelSpec> describe(const Op& op, const Signature& request) const;
  // Describes the request, then the layouts of that answer, for which another row may come first.
  // Returns the spec of the kernel that make() makes for them: its workspace is the one to give.
  // Throws Error if no kernel takes the layouts of the first answer as they are.
  std::optional<KernelSpec> resolve(const Op& op, const Signature& request) const;
  // Throws Error with the op and the signature if no kernel can run it.
  std::unique_ptr<Kernel> make(const Op& op, const Signature& signature) const;

 private:
  struct Row {
    Describe describe;
    Make make;
    Provider by{};
  };
  const Row* row_for(const Op& op, const Signature& request, std::optional<KernelSpec>& spec) const;

  std::unordered_map<std::type_index, std::vector<Row>> rows_;
  std::optional<Row> otherwise_;
};

}  // namespace cnn
