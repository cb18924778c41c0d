#include "layers/cpu/weight_pairs.h"

#include "runtime/divide_up.h"

namespace cnn::layers::cpu {

WeightPairs::Item WeightPairs::item(std::int64_t number) const {
  const std::int64_t paired = orders_.paired() / weight_block;
  const std::int64_t together = number / (paired * orders_.taps);
  const std::int64_t rest = number % (paired * orders_.taps);
  return orders_.to_next_tap > orders_.to_next_pairs
             ? Item{together, rest % paired, rest / paired}
             : Item{together, rest / orders_.taps, rest % orders_.taps};
}

void WeightPairs::operator()(const Operands& o) const {
  const float* const from = o.in[0].as<float>().data();
  auto* const to = reinterpret_cast<std::uint16_t*>(o.out[0].data);
  const std::int64_t items =
      orders_.unpaired() / orders_.together * (orders_.paired() / weight_block) * orders_.taps;
  parallel_for(items, divide_up(elements_per_thread, orders_.together * weight_block),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   convert(item(i), from, to);
                 }
               });
}

void WeightPairs::convert(const Item& item, const float* from, std::uint16_t* to) const {
  const WeightOrders& w = orders_;
  const std::int64_t first_paired = item.paired * weight_block, pair = first_paired / 2;
  to += item.together * w.to_next_together + item.tap * w.to_next_tap +
        pair / w.pairs * w.to_next_pairs + pair % w.pairs * w.together * 2;
  // Without blocks of pairs the pairs lie at `to_next_pairs`.
  const std::int64_t line = w.pairs == 1 ? w.to_next_pairs : w.together * 2;
  const WeightPairLoops& loops = avx512_bf16_weight_pairs();
  const auto function = w.pairs_outputs ? loops.pair_outputs : loops.pair_inputs;
  for (std::int64_t i = 0; i < w.together; i += weight_block) {
    const std::int64_t other = item.together * w.together + i;
    const std::int64_t out = w.pairs_outputs ? first_paired : other;
    const std::int64_t in = w.pairs_outputs ? other : first_paired;
    function({.from = from + out / w.from_outs * w.from_next_out + out % w.from_outs +
                      in / weight_block * w.from_next_in + item.tap * w.from_next_tap,
              .from_row = w.from_outs,
              .to = to + i * 2,
              .to_line = line});
  }
}

}  // namespace cnn::layers::cpu
