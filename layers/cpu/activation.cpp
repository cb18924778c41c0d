#include "layers/activation.h"

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

void add_activation_rows(KernelTable& table, const Loops& loops) {
  const auto describe = [](const auto& /*op*/, const Signature& request) {
    return is_vectorised(request.in[0].type) ? std::optional(like_first_input(request))
                                             : std::nullopt;
  };
  table.add<Relu>(describe, [&loops](const Relu& op, const Signature& s) {
    const TypedLoops& typed = loops_of(loops, s.in[0].type);
    return own_kernel([&typed, limit = op.limit](const Operands& o) {
      parallel_elements(o.in[0].desc, [&](std::int64_t first, std::int64_t n) {
        typed.relu(at(o.in[0], first), at(o.out[0], first), n, limit);
      });
    });
  });
  table.add<ReluBackward>(describe, [&loops](const ReluBackward& op, const Signature& s) {
    const TypedLoops& typed = loops_of(loops, s.in[0].type);
    return own_kernel([&typed, limit = op.limit](const Operands& o) {
      parallel_elements(o.in[0].desc, [&](std::int64_t first, std::int64_t n) {
        typed.relu_backward(at(o.in[0], first), at(o.in[1], first), at(o.out[0], first), n, limit);
      });
    });
  });
}

}  // namespace cnn::layers::cpu
