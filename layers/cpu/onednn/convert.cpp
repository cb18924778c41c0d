#include "layers/cpu/onednn/onednn.h"
#include "layers/cpu/rows.h"
#include "layers/elementwise.h"

namespace cnn::layers::cpu {
namespace {

// The spec equals the request: oneDNN converts between all orders.
std::optional<Plan> plan_convert(const Convert& /*op*/, const Signature& request,
                                 const Target& target) {
  return plan_reorder(request.in[0], request.out[0], target.engine);
}

}  // namespace

void add_convert_rows(KernelTable& table) {
  add_primitive<Convert>(table, effective_isa(), plan_convert);
}

}  // namespace cnn::layers::cpu
