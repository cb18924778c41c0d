#include "bench/report/divergence.h"

#include <cmath>
#include <fmt/format.h>

#include "bench/flags/number_text.h"

namespace cnn::bench {

void DivergenceWatch::step_finished(const FinishedStep& step) {
  if (std::isfinite(step.total_loss)) {
    since_.reset();
  } else if (!since_) {
    since_ = Since{.number = step.number, .global_step = step.global_step, .loss = step.total_loss};
  }
}

void DivergenceWatch::end(const RunEnd& /*end*/) {
  if (!since_) {
    return;
  }
  const bool timed = since_->number > 0;
  const std::string loss = fixed(since_->loss, 0);
  console_.note(
      fmt::format("the training diverged: the loss is {} since {} (global step {}); a lower "
                  "--init_learning_rate may help",
                  loss, timed ? fmt::format("step {}", since_->number) : std::string("the warm-up"),
                  since_->global_step));
  result_["diverged"] = {{"step", timed ? Json(since_->number) : Json(nullptr)},
                         {"global_step", since_->global_step},
                         {"loss", loss}};
}

void DivergenceWatch::failed(const RunEnd& end, std::string_view /*what*/) { this->end(end); }

}  // namespace cnn::bench
