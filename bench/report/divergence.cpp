#include "bench/report/divergence.h"

#include <cmath>
#include <fmt/format.h>

#include "bench/flags/number_text.h"

namespace cnn::bench {

namespace {

// Returns what the sum of the squared weights proves of the weights before the step. A sum of
// squares is NaN only if a weight is. In 32 bits it overflows for finite weights too.
std::string_view weights_text(double l2) {
  if (std::isnan(l2)) {
    return "the weights were not finite before this step; ";
  }
  return std::isinf(l2) ? "the sum of the squared weights was infinite before this step; " : "";
}

}  // namespace

std::string DivergenceWatch::name_of(const Since& since) {
  return since.number > 0 ? fmt::format("step {}", since.number) : std::string("the warm-up");
}

void DivergenceWatch::step_finished(const FinishedStep& step) {
  was_checked_ = was_checked_ || step.global_step == checked_step_;
  if (std::isfinite(step.total_loss)) {
    since_.reset();
    tensor_.reset();
    is_checked_ = step.global_step == checked_step_;
    if (!step.timed()) {
      tell_checked();
    }
  } else if (!since_) {
    since_ = Since{.number = step.number,
                   .global_step = step.global_step,
                   .loss = step.total_loss,
                   .l2 = step.values.l2};
    is_untold_ = !has_told_;
    if (!step.timed()) {
      tell();
    }
  }
}

// Runs between timed steps, since reading tensors back takes time.
Next DivergenceWatch::work(const FinishedStep& /*step*/) {
  tell();
  tell_checked();
  return Next::go_on;
}

void DivergenceWatch::tell_checked() {
  if (!std::exchange(is_checked_, false)) {
    return;
  }
  const std::string tensor = find_tensor_().tensor;
  console_.note(fmt::format(
      "global step {}: the loss is finite; {}", *checked_step_,
      tensor.empty() ? std::string("so is every tensor of the step")
                     : fmt::format("the first tensor of the step that is not is {}", tensor)));
}

void DivergenceWatch::tell() {
  if (!std::exchange(is_untold_, false)) {
    return;
  }
  has_told_ = true;
  const FirstNonFinite found = find_tensor_();
  tensor_ = found.tensor;
  const std::string_view where = found.of_whole_step ? "of the step" : "in memory";
  std::string first = tensor_->empty() ? std::string("what is left of the step in memory is finite")
                                       : fmt::format("the first tensor {} that is not finite is {}",
                                                     where, *tensor_);
  if (!found.of_whole_step) {
    first += fmt::format("; the same run with --check_finite_step={} looks at all of the step",
                         since_->global_step);
  }
  console_.note(
      fmt::format("{} (global step {}): the loss is {}; {}{}; lower --init_learning_rate or set "
                  "--gradient_clip",
                  name_of(*since_), since_->global_step, fixed(since_->loss, 0),
                  weights_text(since_->l2), first));
}

void DivergenceWatch::end(const RunEnd& /*end*/) {
  if (checked_step_ && !was_checked_) {
    console_.note(
        fmt::format("--check_finite_step={}: the run did not come to this step", *checked_step_));
  }
  if (!since_) {
    return;
  }
  const std::string loss = fixed(since_->loss, 0);
  console_.note(
      fmt::format("the training diverged: the loss is {} since {} (global step {}); a lower "
                  "--init_learning_rate may help",
                  loss, name_of(*since_), since_->global_step));
  const bool is_named = tensor_ && !tensor_->empty();
  result_["diverged"] = {{"step", since_->number > 0 ? Json(since_->number) : Json(nullptr)},
                         {"global_step", since_->global_step},
                         {"loss", loss},
                         {"tensor", is_named ? Json(*tensor_) : Json(nullptr)}};
}

void DivergenceWatch::failed(const RunEnd& end, std::string_view /*what*/) { this->end(end); }

}  // namespace cnn::bench
