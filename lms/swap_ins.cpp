#include "lms/swap_ins.h"

#include <algorithm>
#include <utility>

namespace cnn::lms {

std::vector<Swap> one_at_a_time(SwappedTensor swapped) {
  for (SwapIn& in : swapped.swap_ins) {
    std::erase_if(in.readers, [&](StepId reader) { return reader <= swapped.out_behind; });
  }
  std::erase_if(swapped.swap_ins, [](const SwapIn& in) { return in.readers.empty(); });
  std::ranges::stable_sort(swapped.swap_ins, {},
                           [](const SwapIn& in) { return in.readers.front(); });
  std::vector<Swap> swaps;
  StepId last = swapped.out_behind;  // that reads what is on the device
  for (const SwapIn& in : swapped.swap_ins) {
    const StepId first = in.readers.front();
    const bool still_there = !swaps.empty() && in.not_before.value_or(first) < last;
    if (!still_there && first > last) {
      std::optional<StepId> trigger = in.not_before;
      if (trigger && *trigger >= first) {
        trigger.reset();
      } else if (trigger) {
        trigger = std::max(*trigger, last);
      }
      swaps.push_back({.tensor = swapped.tensor,
                       .out_behind = last,
                       .back_before = first,
                       .not_before = trigger,
                       .on_host = !swaps.empty()});
    }
    last = std::max(last, in.readers.back());
  }
  return swaps;
}

std::string shared_copies_text(std::size_t made, std::size_t original) {
  return "A tensor is on the device once at a time: of " + std::to_string(original) +
         " swap-in operations " + std::to_string(made) + " are made";
}

}  // namespace cnn::lms
