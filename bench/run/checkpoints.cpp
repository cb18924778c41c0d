#include "bench/run/checkpoints.h"

#include "bench/run/team.h"

namespace cnn::bench {

void Checkpoints::start(const RunStart& /*run*/) { last_save_ = Clock::now(); }

bool Checkpoints::work_is_due(const FinishedStep& step) const {
  const bool by_steps = options_.every_steps > 0 && step.number % options_.every_steps == 0;
  return by_steps || (options_.every_seconds > 0 &&
                      Clock::now() - last_save_ >= std::chrono::seconds(options_.every_seconds));
}

Next Checkpoints::work(const FinishedStep& step) {
  save(step.global_step);
  return Next::go_on;
}

void Checkpoints::end(const RunEnd& end) { save(end.global_step); }

void Checkpoints::save(std::int64_t global_step) {
  if (saved_step_ != global_step) {
    team_.save(global_step);
    saved_step_ = global_step;
    last_save_ = Clock::now();
  }
}

}  // namespace cnn::bench
