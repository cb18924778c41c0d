#include "bench/run/variable_io.h"

#include <vector>

#include "layers/elementwise.h"
#include "layers/initializer.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {

VariableIo::VariableIo(Device& device, const KernelTable& kernels, Variables& variables)
    : device_(device),
      kernels_(kernels),
      variables_(variables),
      stream_(device.make_stream(Lane::compute)) {}

Buffer& VariableIo::plain_buffer(std::size_t bytes) {
  if (plain_.bytes() < bytes) {
    plain_ = Buffer();  // free the old one first
    plain_ = device_.allocate(bytes);
  }
  return plain_;
}

void VariableIo::run(const Op& op, std::vector<TensorView> in, std::vector<TensorView> out) {
  Operands operands{.in = std::move(in), .out = std::move(out)};
  Signature signature;
  for (const TensorView& view : operands.in) {
    signature.in.push_back(view.desc);
  }
  for (const TensorView& view : operands.out) {
    signature.out.push_back(view.desc);
  }
  const std::optional<KernelSpec> spec = kernels_.describe(op, signature);
  check(spec && spec->in == signature.in && spec->out == signature.out,
        "no kernel runs " + std::string(op.name()) + " on " + to_string(signature.in.front()) +
            " giving " + to_string(signature.out.front()));
  Buffer workspace;
  if (spec->workspace > 0) {
    workspace = device_.allocate(spec->workspace);
    operands.workspace = {workspace.data(), spec->workspace};
  }
  const std::unique_ptr<Kernel> kernel = kernels_.make(op, signature);
  kernel->run(*stream_, operands);
  stream_->synchronize();
}

void VariableIo::write(const Variable& variable, std::span<const float> values) {
  const TensorView view = variables_.view(variable);
  const TensorDesc plain_desc = plain(view.desc);
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  check(values.size_bytes() == plain_desc.bytes(),
        "wrong number of values for " + variable.info.name);
  if (view.desc == plain_desc) {
    stream_->copy(view.data, bytes, values.size_bytes());
    stream_->synchronize();
    return;
  }
  std::byte* staged = plain_buffer(values.size_bytes()).data();
  stream_->copy(staged, bytes, values.size_bytes());
  run(layers::Convert(view.desc.type), {{plain_desc, staged}}, {view});
}

void VariableIo::read(const Variable& variable, std::span<float> values) {
  const TensorView view = variables_.view(variable);
  const TensorDesc plain_desc = plain(view.desc);
  auto* bytes = reinterpret_cast<std::byte*>(values.data());
  check(values.size_bytes() == plain_desc.bytes(),
        "wrong number of values for " + variable.info.name);
  const std::byte* source = view.data;
  if (view.desc != plain_desc) {
    std::byte* staged = plain_buffer(values.size_bytes()).data();
    run(layers::Convert(plain_desc.type), {view}, {{plain_desc, staged}});
    source = staged;
  }
  stream_->copy(bytes, source, values.size_bytes());
  stream_->synchronize();
}

void VariableIo::initialize(std::uint64_t seed) {
  std::vector<float> values;
  for (const Variable& variable : variables_.all()) {
    if (variable.info.role == Role::derived) {
      continue;
    }
    values.resize(static_cast<std::size_t>(variable.info.desc.shape.elements()));
    layers::fill(variable.info.initializer, seed, variable.info.name, values);
    write(variable, values);
  }
}

}  // namespace cnn::bench
