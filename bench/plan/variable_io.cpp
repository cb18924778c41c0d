#include "bench/plan/variable_io.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "layers/elementwise.h"
#include "layers/initializer.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {
namespace {

// Returns the number of rows, along the first axis, that can be copied separately; 1: only the
// whole tensor.
std::int64_t rows_of(const TensorDesc& desc) {
  const bool one_behind_another =
      desc.shape.rank() > 0 && desc.layout != Layout::packed && desc.pitch == 0;
  return one_behind_another ? std::max<std::int64_t>(desc.shape[0], 1) : 1;
}

// Returns the spec of a convert node between these two. Throws Error if no kernel supports it.
KernelSpec spec_of(const KernelTable& kernels, const TensorDesc& from, const TensorDesc& to) {
  std::optional<KernelSpec> spec =
      kernels.describe(layers::Convert(to.type), {.in = {from}, .out = {to}});
  check(spec && spec->in.front() == from && spec->out.front() == to,
        "no kernel converts " + to_string(from) + " to " + to_string(to));
  return *std::move(spec);
}

}  // namespace

// Some rows of a variable whose first axis is outermost in memory.
struct VariableIo::Part {
  TensorDesc desc;           // layout on the device
  std::size_t offset = 0;    // bytes, on the device
  std::size_t first = 0;     // element, of the plain values
  std::size_t elements = 0;  // of the plain values
};

std::vector<VariableIo::Part> VariableIo::parts_of(const TensorDesc& desc) {
  constexpr std::size_t max_bytes = std::size_t{64} << 20U;  // size of plain values
  const std::int64_t rows = rows_of(desc);
  const auto share = [&](std::size_t whole, std::int64_t some) {
    return whole / static_cast<std::size_t>(rows) * static_cast<std::size_t>(some);
  };
  const auto elements = static_cast<std::size_t>(desc.shape.elements());
  const std::size_t bytes_of_row = std::max<std::size_t>(share(plain(desc).bytes(), 1), 1);
  const std::int64_t max_rows =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(max_bytes / bytes_of_row), 1, rows);
  std::vector<Part> parts;
  for (std::int64_t row = 0; row < rows; row += max_rows) {
    const std::int64_t count = std::min(max_rows, rows - row);
    Part part{.desc = desc,
              .offset = share(desc.bytes(), row),
              .first = share(elements, row),
              .elements = share(elements, count)};
    if (count < rows) {
      part.desc.shape[0] = count;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

std::size_t variable_io_bytes(const KernelTable& kernels, const Variables& variables) {
  std::size_t bytes = 0;
  for (const Variable& variable : variables.all()) {
    if (variable.info.role == Role::derived) {
      continue;
    }
    for (const VariableIo::Part& part : VariableIo::parts_of(variable.info.desc)) {
      const TensorDesc staged = plain(part.desc);
      if (part.desc == staged) {
        continue;
      }
      std::size_t workspace = spec_of(kernels, staged, part.desc).workspace;
      if (variable.info.saved) {
        workspace = std::max(workspace, spec_of(kernels, part.desc, staged).workspace);
      }
      bytes = std::max(bytes, aligned(staged.bytes()) + workspace);
    }
  }
  return bytes;
}

VariableIo::VariableIo(Device& device, const KernelTable& kernels, Variables& variables,
                       std::span<std::byte> arena)
    : kernels_(kernels),
      variables_(variables),
      arena_(arena),
      stream_(device.make_stream(Lane::compute)) {
  const std::size_t needed = variable_io_bytes(kernels, variables);
  check(arena.size() >= needed, "reading and writing the variables takes " +
                                    std::to_string(needed) + " bytes, the arena has " +
                                    std::to_string(arena.size()));
}

// One of the operands lies at the start of the arena; the workspace follows.
void VariableIo::convert(const TensorView& from, const TensorView& to) {
  const layers::Convert op(to.desc.type);
  const Signature signature{.in = {from.desc}, .out = {to.desc}};
  const KernelSpec spec = spec_of(kernels_, from.desc, to.desc);
  const std::size_t behind = aligned(plain(from.desc).bytes());
  measured_peak_ = std::max(measured_peak_, behind + spec.workspace);
  const Operands operands{
      .in = {from}, .out = {to}, .workspace = arena_.subspan(behind, spec.workspace)};
  const std::unique_ptr<Kernel> kernel = kernels_.make(op, signature);
  kernel->run(*stream_, operands);
  stream_->synchronize();
}

VariableIo::PartViews VariableIo::views_of(const TensorView& variable, const Part& part) const {
  const TensorView view{part.desc, variable.data + part.offset};
  const TensorDesc staged = plain(part.desc);
  return {.plain = {staged, view.desc == staged ? view.data : arena_.data()}, .variable = view};
}

void VariableIo::upload(const TensorView& to, std::size_t first, std::span<const float> values) {
  stream_->copy(to.data + first * sizeof(float), reinterpret_cast<const std::byte*>(values.data()),
                values.size_bytes());
  stream_->synchronize();
}

void VariableIo::convert_to_stored(const PartViews& views) {
  if (views.plain.desc != views.variable.desc) {
    convert(views.plain, views.variable);
  }
}

void VariableIo::write(const TensorView& variable, const Part& part,
                       std::span<const float> values) {
  const PartViews views = views_of(variable, part);
  upload(views.plain, 0, values);
  convert_to_stored(views);
}

void VariableIo::read(const TensorView& variable, const Part& part, std::span<float> values) {
  const PartViews views = views_of(variable, part);
  if (views.plain.desc != views.variable.desc) {
    convert(views.variable, views.plain);
  }
  stream_->copy(reinterpret_cast<std::byte*>(values.data()), views.plain.data, values.size_bytes());
  stream_->synchronize();
}

void VariableIo::write(const Variable& variable, std::span<const float> values) {
  const TensorView view = variables_.view(variable);
  check(values.size_bytes() == plain(view.desc).bytes(),
        "wrong number of values for " + variable.info.name);
  for (const Part& part : parts_of(view.desc)) {
    write(view, part, values.subspan(part.first, part.elements));
  }
}

void VariableIo::read(const Variable& variable, std::span<float> values) {
  const TensorView view = variables_.view(variable);
  check(values.size_bytes() == plain(view.desc).bytes(),
        "wrong number of values for " + variable.info.name);
  for (const Part& part : parts_of(view.desc)) {
    read(view, part, values.subspan(part.first, part.elements));
  }
}

// The host holds few values at once: beside an arena that takes what a small container has, there
// is no room for more.
void VariableIo::initialize(std::uint64_t seed) {
  constexpr std::size_t most = std::size_t{4} << 20U;
  std::vector<float> values;
  for (const Variable& variable : variables_.all()) {
    if (variable.info.role == Role::derived) {
      continue;
    }
    const TensorView view = variables_.view(variable);
    for (const Part& part : parts_of(view.desc)) {
      const PartViews views = views_of(view, part);
      for (std::size_t done = 0; done < part.elements; done += values.size()) {
        values.resize(std::min(most, part.elements - done));
        layers::fill(variable.info.initializer, seed, variable.info.name, values,
                     part.first + done);
        upload(views.plain, done, values);
      }
      convert_to_stored(views);
    }
  }
}

}  // namespace cnn::bench
