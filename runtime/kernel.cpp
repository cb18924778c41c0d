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

void KernelTable::otherwise(Describe describe, Make make) {
  otherwise_ = Row{std::move(describe), std::move(make)};
}

std::optional<KernelSpec> KernelTable::describe(const Op& op, const Signature& asked) const {
  if (const auto row = rows_.find(std::type_index(typeid(op))); row != rows_.end()) {
    if (auto spec = row->second.describe(op, asked)) {
      return spec;
    }
  }
  return otherwise_ ? otherwise_->describe(op, asked) : std::nullopt;
}

std::unique_ptr<Kernel> KernelTable::make(const Op& op, const Signature& signature) const {
  // A row makes what it would itself answer with; the same question decided in describe().
  const auto serves = [&](const Row& row) {
    const auto spec = row.describe(op, signature);
    return spec && spec->in == signature.in && spec->out == signature.out;
  };
  std::unique_ptr<Kernel> kernel;
  if (const auto row = rows_.find(std::type_index(typeid(op)));
      row != rows_.end() && serves(row->second)) {
    kernel = row->second.make(op, signature);
  } else if (otherwise_ && serves(*otherwise_)) {
    kernel = otherwise_->make(op, signature);
  }
  if (kernel == nullptr) {
    throw Error("no kernel of this backend runs " + std::string(op.name()) + " on " +
                to_string(signature));
  }
  return kernel;
}

}  // namespace cnn
