#include <optional>
#include <vector>

#include "layers/cpu/onednn/onednn.h"
#include "layers/cpu/rows.h"
#include "layers/cpu/weight_pairs.h"
#include "layers/elementwise.h"

namespace cnn::layers::cpu {
namespace {

using Dims = dnnl::memory::dims;

// The spec equals the request: oneDNN converts between all orders.
std::optional<Plan> plan_convert(const Convert& /*op*/, const Signature& request,
                                 const Target& target) {
  return plan_reorder(request.in[0], request.out[0], target.engine);
}

// The blocks of a memory order: the innermost have sizes and numbers of axes. Padding counts as
// channels, whose weights are zero in every order.
struct Blocking {
  explicit Blocking(const dnnl::memory::desc& desc)
      : sizes(desc.get_inner_blks()),
        axes(desc.get_inner_idxs()),
        strides(desc.get_strides()),
        dims(desc.get_padded_dims()) {}
  std::int64_t taps() const { return dims.size() < 4 ? 1 : dims[2] * dims[3]; }
  std::int64_t next_tap() const { return dims.size() < 4 ? 0 : strides[3]; }
  bool has_taps_in_rows() const { return dims.size() < 4 || strides[2] == strides[3] * dims[3]; }

  Dims sizes, axes, strides, dims;
};

// Writes where f32 weights lie; returns whether our loops can read them.
bool read_order(const Blocking& from, WeightOrders& orders) {
  if (!from.has_taps_in_rows() || from.axes != Dims{1, 0} || from.sizes[0] != weight_block ||
      from.sizes[1] % weight_block != 0) {
    return false;
  }
  orders.from_outs = from.sizes[1];
  orders.from_next_out = from.strides[0];
  orders.from_next_in = from.strides[1];
  orders.from_next_tap = from.next_tap();
  return true;
}

// Writes where pairs of bf16 lie; returns whether our loops can write them.
bool write_order(const Blocking& to, WeightOrders& orders) {
  const std::size_t blocks = to.sizes.size();
  if (!to.has_taps_in_rows() || blocks < 2 || blocks > 3 || to.sizes.back() != 2 ||
      to.axes.back() > 1) {
    return false;
  }
  const auto paired = static_cast<std::size_t>(to.axes.back());
  const std::size_t other = 1 - paired;
  orders.pairs_outputs = paired == 0;
  orders.together = to.sizes[blocks - 2];
  orders.pairs = blocks == 3 ? to.sizes[0] : 1;
  orders.to_next_together = to.strides[other];
  orders.to_next_pairs = to.strides[paired];
  orders.to_next_tap = to.next_tap();
  return to.axes[blocks - 2] == static_cast<std::int64_t>(other) &&
         orders.together % weight_block == 0 &&
         (blocks == 2 || (to.axes[0] == to.axes.back() && orders.pairs % (weight_block / 2) == 0));
}

// Returns the orders if our loops convert between them, else nothing.
std::optional<WeightOrders> weight_orders(const Signature& s) {
  const TensorDesc &from = s.in[0], &to = s.out[0];
  if (from.layout != Layout::packed || to.layout != Layout::packed || from.type != DataType::f32 ||
      to.type != DataType::bf16 || view_of(from) != view_of(to) || view_of(from) == View::grouped) {
    return std::nullopt;
  }
  const Blocking before(memory_desc(from)), after(memory_desc(to));
  if (before.dims != after.dims || before.dims.size() == 3) {
    return std::nullopt;
  }
  WeightOrders orders{.outs = before.dims[0], .ins = before.dims[1], .taps = before.taps()};
  if (orders.outs % weight_block != 0 || orders.ins % weight_block != 0 ||
      !read_order(before, orders) || !write_order(after, orders)) {
    return std::nullopt;
  }
  return orders;
}

void add_weight_pairs_row(KernelTable& table) {
  table.add<Convert>(
      [](const Convert& /*op*/, const Signature& request) {
        return weight_orders(request)
                   ? std::optional(KernelSpec{.in = request.in, .out = request.out})
                   : std::nullopt;
      },
      [](const Convert& /*op*/, const Signature& s) {
        return own_kernel(WeightPairs(weight_orders(s).value()));
      });
}

}  // namespace

void add_convert_rows(KernelTable& table) {
  if (effective_isa().avx512_bf16) {
    add_weight_pairs_row(table);
  }
  add_primitive<Convert>(table, effective_isa(), plan_convert);
}

}  // namespace cnn::layers::cpu
