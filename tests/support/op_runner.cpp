#include "tests/support/op_runner.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "layers/elementwise.h"
#include "runtime/error.h"

namespace cnn::tests {

namespace {

// once_more: runs the kernel twice, which must not change the result, because kernels keep no
// state.
void run_kernel(const KernelTable& table, const Op& op, const KernelSpec& spec, Operands operands,
                bool once_more) {
  TensorDesc bytes;
  bytes.shape = {static_cast<std::int64_t>(spec.workspace)};
  bytes.type = DataType::u8;
  const HostTensor workspace(bytes);
  operands.workspace = {workspace.view().data, spec.workspace};
  ImmediateStream stream;
  const std::unique_ptr<Kernel> kernel = table.make(op, {spec.in, spec.out});
  kernel->run(stream, operands);
  if (once_more) {
    kernel->run(stream, operands);
  }
  check(workspace.guard_is_intact(), "a kernel wrote past its workspace");
}

// Only kernels know packed forms, so their own Convert packs and unpacks them.
void convert_by_kernel(const KernelTable& table, const TensorView& from, const TensorView& to) {
  const layers::Convert convert(to.desc.type);
  const auto spec = table.describe(convert, {{from.desc}, {to.desc}});
  check(spec && spec->in[0] == from.desc && spec->out[0] == to.desc,
        "no kernel converts " + to_string(from.desc) + " to " + to_string(to.desc));
  run_kernel(table, convert, *spec, {{from}, {to}, {}}, false);
}

bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return std::memcmp(a.view().data, b.view().data, a.desc().bytes()) == 0;
}

HostTensor opened_within_bounds(const KernelTable& table, const HostTensor& tensor) {
  check(tensor.guard_is_intact(), "a kernel wrote past the end of " + to_string(tensor.desc()));
  check(tensor.gaps_are_intact(),
        "a kernel wrote between the pixels of " + to_string(tensor.desc()));
  return opened(table, tensor.view());
}

}  // namespace

HostTensor converted(const KernelTable& table, const TensorView& tensor, const TensorDesc& desc) {
  HostTensor result(desc);
  convert_by_kernel(table, tensor, result.view());
  return result;
}

HostTensor stored(const KernelTable& table, const TensorView& plain_values,
                  const TensorDesc& desc) {
  HostTensor result(desc);
  if (desc.layout != Layout::packed) {
    pack(plain_values, result.view());
  } else {
    convert_by_kernel(table, plain_values, result.view());
  }
  return result;
}

HostTensor opened(const KernelTable& table, const TensorView& tensor) {
  HostTensor result(plain(tensor.desc));
  if (tensor.desc.layout != Layout::packed) {
    unpack(tensor, result.view());
  } else {
    convert_by_kernel(table, tensor, result.view());
  }
  return result;
}

void ImmediateStream::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

std::optional<OpRun> run_op(const KernelTable& table, const Op& op, const Signature& request,
                            std::span<const TensorView> in, std::span<const InPlace> shared) {
  const std::optional<KernelSpec> spec = table.resolve(op, request);
  if (!spec || std::ranges::any_of(shared, [&](const InPlace& pair) {
        return spec->in[pair.input].bytes() != spec->out[pair.output].bytes();
      })) {
    return std::nullopt;
  }
  OpRun result{.signature = {spec->in, spec->out}, .before = {}, .after = {}, .out = {}};
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> outputs;
  Operands operands;
  for (std::size_t i = 0; i < in.size(); ++i) {
    result.before.push_back(copy_of(in[i]));
    round_to(spec->in[i].type, result.before.back().view());
    inputs.push_back(stored(table, in[i], spec->in[i]));
    operands.in.push_back(inputs.back().view());
  }
  for (const TensorDesc& desc : spec->out) {
    outputs.emplace_back(desc);
    operands.out.push_back(outputs.back().view());
  }
  std::vector<bool> overwritten(in.size());
  for (const InPlace& pair : shared) {
    operands.out[pair.output].data = operands.in[pair.input].data;
    overwritten[pair.input] = true;
  }
  bool mutates = !shared.empty();
  for (std::size_t i = 0; i < in.size(); ++i) {
    mutates = mutates || op.mutates(i);
  }
  run_kernel(table, op, *spec, operands, !mutates);
  for (const InPlace& pair : shared) {
    const HostTensor& output = outputs[pair.output];
    check(inputs[pair.input].guard_is_intact(),
          "a kernel wrote past the end of what it overwrites");
    std::memcpy(output.view().data, operands.out[pair.output].data, output.desc().bytes());
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    result.after.push_back(overwritten[i] ? copy_of(result.before[i].view())
                                          : opened_within_bounds(table, inputs[i]));
    check(op.mutates(i) || same_bytes(result.before[i], result.after[i]),
          "the kernel changed its input " + std::to_string(i));
  }
  for (const HostTensor& output : outputs) {
    result.out.push_back(opened_within_bounds(table, output));
  }
  return result;
}

}  // namespace cnn::tests
