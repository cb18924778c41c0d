#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "layers/concat.h"
#include "layers/elementwise.h"
#include "layers/operands.h"
#include "runtime/kernel.h"
#include "tests/support/host_tensor.h"

// Runs every op by its reference loops on operands in device layout, in place of the libraries that
// need a GPU.
namespace cnn::tests {

class DeviceLoops final : public Kernel {
 public:
  explicit DeviceLoops(const Op& op) : op_(op) {}
  void run(Stream& stream, const Operands& operands) override {
    stream.host([op = &op_, &operands] { compute(*op, operands); });
  }

 private:
  static void compute(const Op& op, const Operands& operands) {
    std::vector<HostTensor> in, out;
    std::vector<TensorView> in_views, out_views;
    for (const TensorView& view : operands.in) {
      in.emplace_back(plain(view.desc));
      in_views.push_back(in.back().view());
      unpack(view, in_views.back());
    }
    for (const TensorView& view : operands.out) {
      out.emplace_back(plain(view.desc));
      out_views.push_back(out.back().view());
    }
    op.reference(in_views, out_views);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (op.mutates(i)) {
        pack(in_views[i], operands.in[i]);
      }
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      pack(out_views[i], operands.out[i]);
    }
  }

  const Op& op_;
};

// Copies only the parts of a concatenation that are not yet views of the whole, so a wrongly placed
// view shows.
class PartLoops final : public Kernel {
 public:
  void run(Stream& stream, const Operands& operands) override {
    stream.host([&operands] {
      const bool joins = operands.out.size() == 1 && operands.in.size() > 1;
      const TensorView whole = joins ? operands.out[0] : operands.in[0];
      std::size_t first = 0;
      for (const TensorView& part : joins ? operands.in : operands.out) {
        TensorView place = part;
        place.desc.pitch = whole.desc.shape[1];
        place.data = whole.data + first * size_of(whole.desc.type);
        if (part.data != place.data) {
          const HostTensor values(plain(part.desc));
          unpack(joins ? part : place, values.view());
          pack(values.view(), joins ? place : part);
        }
        first += static_cast<std::size_t>(part.desc.shape[1]);
      }
    });
  }
};

// Returns the signature that the libraries' kernels accept: channels innermost at any pitch, every
// floating-point input in the type of the first.
inline KernelSpec as_libraries_take(const Signature& request) {
  KernelSpec spec{.workspace = 0, .in = request.in, .out = request.out};
  for (auto* descs : {&spec.in, &spec.out}) {
    for (TensorDesc& desc : *descs) {
      desc.layout = desc.shape.rank() == 4 ? Layout::nhwc : Layout::nchw;
    }
  }
  for (TensorDesc& desc : spec.in) {
    desc.type = layers::is_real(desc.type) ? spec.in.front().type : desc.type;
  }
  return spec;
}

inline KernelTable device_loops() {
  KernelTable table;
  const auto describe = [](const Op& /*op*/, const Signature& request) {
    return std::optional(as_libraries_take(request));
  };
  const auto make_parts = [](const Op& /*op*/, const Signature& /*signature*/) {
    return std::make_unique<PartLoops>();
  };
  table.add<layers::Concat>(describe, make_parts);
  table.add<layers::Split>(describe, make_parts);
  table.add<layers::Convert>(
      [](const layers::Convert& /*op*/, const Signature& request) {
        return std::optional(KernelSpec{.workspace = 0, .in = request.in, .out = request.out});
      },
      [](const layers::Convert& op, const Signature& /*signature*/) {
        return std::make_unique<DeviceLoops>(op);
      });
  table.otherwise(describe, [](const Op& op, const Signature& /*signature*/) {
    return std::make_unique<DeviceLoops>(op);
  });
  return table;
}

}  // namespace cnn::tests
