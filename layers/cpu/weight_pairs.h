#pragma once

#include <cstdint>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/simd/weight_pairs.h"

// Rounds weights from f32 to the orders of pairs in which products of bf16 read them.
namespace cnn::layers::cpu {

// Where the blocks of weights [O,I,taps] lie, in elements. O and I are multiples of 16.
struct WeightOrders {
  std::int64_t outs = 0, ins = 0, taps = 1;
  // f32: [O / from_outs][..][16 inputs][from_outs].
  std::int64_t from_outs = 16;
  std::int64_t from_next_out = 0, from_next_in = 0, from_next_tap = 0;  // of whole blocks
  // bf16: [..][pairs][together][2], with `together` channels of the kind that is not paired. A
  // block of the paired kind has 2 * pairs channels.
  bool pairs_outputs = false;  // else inputs
  std::int64_t together = 16, pairs = 8;
  std::int64_t to_next_together = 0, to_next_pairs = 0, to_next_tap = 0;  // of whole blocks

  std::int64_t paired() const { return pairs_outputs ? outs : ins; }
  std::int64_t unpaired() const { return pairs_outputs ? ins : outs; }
};

// in: weights f32. out: the same rounded to bf16, in another order.
class WeightPairs {
 public:
  explicit WeightPairs(const WeightOrders& orders) : orders_(orders) {}
  void operator()(const Operands& o) const;

 private:
  // Blocks of 16 paired channels of a tap that lie end to end for `together` other channels.
  struct Item {
    std::int64_t together, paired, tap;
  };
  Item item(std::int64_t number) const;  // in the order of memory of the output
  void convert(const Item& item, const float* from, std::uint16_t* to) const;

  WeightOrders orders_;
};

}  // namespace cnn::layers::cpu
