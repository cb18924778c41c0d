#include "layers/cpu/onednn.h"
#include "layers/cpu/rows.h"
#include "layers/elementwise.h"

namespace cnn::layers::cpu {
namespace {

// A copy between two descriptors of one tensor. The spec answers what was asked: oneDNN reorders
// anything, and zeroes the padding of what it writes.
std::optional<Plan> plan_convert(const Convert& /*op*/, const Signature& asked,
                                 const dnnl::engine& engine) {
  const TensorDesc& from = asked.in[0];
  const TensorDesc& to = asked.out[0];
  const View view = from.layout == Layout::packed ? view_of(from) : view_of(to);
  const dnnl::reorder::primitive_desc primitive(engine, memory_desc(from, view), engine,
                                                memory_desc(to, view), user_scratchpad());
  Plan plan;
  plan.spec = {
      .workspace = primitive.scratchpad_desc().get_size(), .in = asked.in, .out = asked.out};
  plan.primitive = primitive;
  plan.in.push_back({DNNL_ARG_FROM});
  plan.out.push_back({DNNL_ARG_TO});
  return plan;
}

}  // namespace

void add_convert_rows(KernelTable& table) { add_primitive<Convert>(table, plan_convert); }

}  // namespace cnn::layers::cpu
