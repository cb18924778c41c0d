#include "bench/report/input_record.h"

#include <algorithm>
#include <fmt/format.h>

#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

// Waits below this share of the steps' time are noise.
constexpr double notable_share = 0.02;

}  // namespace

void InputRecord::timing_starts() {
  start_ = dataset_.statistics();
  start_time_ = std::chrono::steady_clock::now();
}

void InputRecord::step_finished(const FinishedStep& step) {
  if (step.timed()) {
    waited_ += step.own_values.input_wait;
    step_seconds_ += step.own_values.seconds;
  }
}

void InputRecord::end(const RunEnd& end) {
  if (end.timed_steps == 0) {
    return;
  }
  const InputUse use{.read = since(dataset_.statistics(), start_),
                     .images = end.timed_steps * options_.batch,
                     .threads = options_.threads,
                     .cores = options_.cores,
                     .seconds = seconds_since(start_time_),
                     .waited = waited_};
  result_["input"] = input_json(use);
  const double share = step_seconds_ > 0 ? waited_ / step_seconds_ : 0;
  if (share > notable_share) {
    console_.note(fmt::format(
        "input: steps waited {:.2f} s for input, {:.1f} % of their time; without it they would do "
        "{:.1f} images/s more. To help: {}",
        waited_, 100 * share,
        static_cast<double>(use.images) / std::max(step_seconds_ - waited_, 1e-9) -
            static_cast<double>(use.images) / step_seconds_,
        input_advice(use)));
  }
  if (use.read.skipped > 0) {
    console_.note("input: " + skipped_text(use.read));
  }
}

void InputRecord::failed(const RunEnd& end, std::string_view /*what*/) { this->end(end); }

}  // namespace cnn::bench
