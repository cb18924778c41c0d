#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "bench/report/event_file.h"
#include "bench/report/observer.h"

namespace cnn::bench {

struct Job;
class Team;

// Writes TensorBoard's events of a run: the graph, and a summary after every step of the warm-up or
// the timed steps whose number --save_summaries_steps divides. --summary_verbosity selects its
// content. List it after all observers that read what a step has left in memory.
class Summaries final : public Observer {
 public:
  // References must outlive this.
  Summaries(const Job& job, Team& team, std::unique_ptr<EventFile> events)
      : job_(job), team_(team), events_(std::move(events)) {}

  void start(const RunStart& run) override;
  void step_starts(std::int64_t number) override;
  void step_finished(const FinishedStep& step) override;
  bool work_is_due(const FinishedStep& step) const override { return is_due(step.number); }
  Next work(const FinishedStep& step) override;

 private:
  bool is_due(std::int64_t number) const;
  void write(const FinishedStep& step);
  void add_scalars(const FinishedStep& step, Summary& summary);
  void add_loss_scale(Summary& summary);
  void add_samples(Summary& summary);
  void add_variables(Summary& summary);

  const Job& job_;
  Team& team_;
  std::unique_ptr<EventFile> events_;
  std::int64_t global_batch_ = 0;
  bool started_ = false;  // the file records the run's first step
};

}  // namespace cnn::bench
