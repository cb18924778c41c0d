#include "bench/run/variable_io.h"

#include <algorithm>
#include <array>
#include <vector>

#include "layers/elementwise.h"
#include "layers/initializer.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {
namespace {

// Axis of the logical shape that stands at each place of the saved one.
std::array<std::size_t, 4> saved_axes(SavedAs order) {
  return order == SavedAs::hwio ? std::array<std::size_t, 4>{2, 3, 1, 0}
                                : std::array<std::size_t, 4>{2, 3, 0, 1};
}

bool is_permuted(const TensorInfo& info) {
  return info.saved_as != SavedAs::same && info.desc.shape.rank() == 4;
}

// Calls visit(position in saved order, position in plain order) for every element.
template <class Visit>
void for_each_saved(const TensorInfo& info, Visit visit) {
  const Shape& shape = info.desc.shape;
  const std::array<std::size_t, 4> axes = saved_axes(info.saved_as);
  std::array<std::int64_t, 4> stride{};
  std::int64_t step = 1;
  for (std::size_t axis = 4; axis-- > 0;) {
    stride[axis] = step;
    step *= shape[axis];
  }
  std::size_t saved = 0;
  for (std::int64_t a = 0; a < shape[axes[0]]; ++a) {
    for (std::int64_t b = 0; b < shape[axes[1]]; ++b) {
      for (std::int64_t c = 0; c < shape[axes[2]]; ++c) {
        const std::int64_t base = a * stride[axes[0]] + b * stride[axes[1]] + c * stride[axes[2]];
        for (std::int64_t d = 0; d < shape[axes[3]]; ++d) {
          visit(saved++, static_cast<std::size_t>(base + d * stride[axes[3]]));
        }
      }
    }
  }
}

}  // namespace

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

Shape saved_shape(const TensorInfo& info) {
  if (!is_permuted(info)) {
    return info.desc.shape;
  }
  const std::array<std::size_t, 4> axes = saved_axes(info.saved_as);
  const Shape& shape = info.desc.shape;
  return {shape[axes[0]], shape[axes[1]], shape[axes[2]], shape[axes[3]]};
}

void to_saved_order(const TensorInfo& info, std::span<const float> plain, std::span<float> saved) {
  if (!is_permuted(info)) {
    std::copy(plain.begin(), plain.end(), saved.begin());
    return;
  }
  for_each_saved(info, [&](std::size_t s, std::size_t p) { saved[s] = plain[p]; });
}

void from_saved_order(const TensorInfo& info, std::span<const float> saved,
                      std::span<float> plain) {
  if (!is_permuted(info)) {
    std::copy(saved.begin(), saved.end(), plain.begin());
    return;
  }
  for_each_saved(info, [&](std::size_t s, std::size_t p) { plain[p] = saved[s]; });
}

}  // namespace cnn::bench
