#include "runtime/kernel.h"

#include <string>

#include "runtime/error.h"

namespace cnn {
namespace {

std::string list_of(const std::vector<TensorDesc>& descs) {
  std::string text;
  for (const TensorDesc& desc : descs) {
    text += (text.empty() ? "" : ", ") + to_string(desc);
  }
  return "(" + text + ")";
}

}  // namespace

std::string to_string(const Signature& signature) {
  return list_of(signature.in) + " -> " + list_of(signature.out);
}

void KernelTable::otherwise(Describe describe, Make make, Provider by) {
  otherwise_ = Row{std::move(describe), std::move(make), by};
}

// Returns the first row that describes the request, and its answer; nullptr if none does.
const KernelTable::Row* KernelTable::row_for(const Op& op, const Signature& request,
                                             std::optional<KernelSpec>& spec) const {
  const auto serves = [&](const Row& row) {
    spec = row.describe(op, request);
    if (spec) {
      spec->by = row.by;
    }
    return spec.has_value();
  };
  if (const auto rows = rows_.find(std::type_index(typeid(op))); rows != rows_.end()) {
    for (const Row& row : rows->second) {
      if (serves(row)) {
        return &row;
      }
    }
  }
  return otherwise_ && op.is_local() && serves(*otherwise_) ? &*otherwise_ : nullptr;
}

std::optional<KernelSpec> KernelTable::describe(const Op& op, const Signature& request) const {
  std::optional<KernelSpec> spec;
  row_for(op, request, spec);
  return spec;
}

std::optional<KernelSpec> KernelTable::resolve(const Op& op, const Signature& request) const {
  const std::optional<KernelSpec> first = describe(op, request);
  if (!first) {
    return std::nullopt;
  }
  const Signature layouts{.in = first->in, .out = first->out};
  std::optional<KernelSpec> spec = describe(op, layouts);
  if (!spec || spec->in != layouts.in || spec->out != layouts.out) {
    throw Error("no kernel of this backend runs " + std::string(op.name()) + " on " +
                to_string(layouts) + ", which one of its kernels asked for");
  }
  return spec;
}

std::unique_ptr<Kernel> KernelTable::make(const Op& op, const Signature& signature) const {
  // Selects the row by the question that describe() asks, since a row makes what it describes.
  std::optional<KernelSpec> spec;
  const Row* row = row_for(op, signature, spec);
  std::unique_ptr<Kernel> kernel;
  if (row != nullptr && spec->in == signature.in && spec->out == signature.out) {
    kernel = row->make(op, signature);
  }
  if (kernel == nullptr) {
    throw Error("no kernel of this backend runs " + std::string(op.name()) + " on " +
                to_string(signature));
  }
  return kernel;
}

}  // namespace cnn
