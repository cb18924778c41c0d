#include "bench/report/fault_watch.h"

#include <fmt/format.h>

namespace cnn::bench {

// A flip has a global step. Other faults count the reductions of this process: one in each step.
void FaultWatch::end(const RunEnd& end) {
  const bool flips = fault_.what == "flip";
  const std::int64_t before = flips ? end.global_step - steps_ : 0;
  if (fault_.step > before && fault_.step <= before + steps_) {
    return;
  }
  console_.note(
      steps_ == 0
          ? fmt::format("--comm_fault={}: nothing was injected, for no step ran", spec_)
          : fmt::format("--comm_fault={}: nothing was injected, for the run had {} {} to {}", spec_,
                        flips ? "the global steps" : "the steps, warm-up included,", before + 1,
                        before + steps_));
}

}  // namespace cnn::bench
