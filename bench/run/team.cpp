#include "bench/run/team.h"

#include <algorithm>

#include "bench/run/session.h"

namespace cnn::bench {

StepValues merge(std::span<const StepValues> ranks) {
  StepValues sum;
  for (const StepValues& rank : ranks) {
    sum.seconds = std::max(sum.seconds, rank.seconds);
    sum.input_wait = std::max(sum.input_wait, rank.input_wait);
    sum.base_loss += rank.base_loss;
    sum.l2 += rank.l2;
    sum.top_1 += rank.top_1;
    sum.top_5 += rank.top_5;
  }
  const auto count = static_cast<double>(ranks.size());
  for (double* const value : {&sum.base_loss, &sum.l2, &sum.top_1, &sum.top_5}) {
    *value /= count;
  }
  return sum;
}

Team::Team(const Job& job, const Backend& backend) {
  sessions_.push_back(std::make_unique<Session>(job, backend));
}

Team::~Team() = default;

void Team::allocate() {
  for (const auto& session : sessions_) {
    session->allocate();
  }
}

std::optional<Restored> Team::restore(const std::string& folder_or_path) {
  std::optional<Restored> restored;
  for (const auto& session : sessions_) {
    restored = session->restore(folder_or_path);
  }
  return restored;
}

void Team::start(std::int64_t global_step) {
  for (const auto& session : sessions_) {
    session->start(global_step);
  }
}

void Team::save(std::int64_t global_step) { sessions_.front()->save(global_step); }

StepValues Team::step(std::int64_t global_step, double learning_rate, Timeline* timeline) {
  values_.clear();
  for (const auto& session : sessions_) {
    Timeline* const wanted = session == sessions_.front() ? timeline : nullptr;
    values_.push_back(session->main().run(global_step, learning_rate, wanted));
  }
  return merge(values_);
}

void Team::begin_evaluation() {
  evaluations_.clear();
  for (const auto& session : sessions_) {
    evaluations_.push_back(&session->evaluation());
  }
}

StepValues Team::evaluation_step(std::int64_t number) {
  values_.clear();
  for (StepRunner* const runner : evaluations_) {
    values_.push_back(runner->run(number, 0));
  }
  return merge(values_);
}

}  // namespace cnn::bench
