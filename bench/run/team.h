#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/report/observer.h"
#include "bench/run/restored.h"

namespace cnn::bench {

struct Backend;
struct Job;
class Session;
class StepRunner;

// The values of one step of a whole team: the mean over its ranks, which have equal batches; the
// time of the slowest.
StepValues merge(std::span<const StepValues> ranks);

// The sessions of a run, one for each of its devices, that step as one. Use it in the order of a
// session: construct, allocate, restore if wanted, start, then step.
class Team {
 public:
  // As Session. References must outlive the team.
  Team(const Job& job, const Backend& backend);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void allocate();
  std::optional<Restored> restore(const std::string& folder_or_path);
  void start(std::int64_t global_step);
  // All ranks hold the same variables, so the first one saves.
  void save(std::int64_t global_step);

  // timeline: if given, takes the times of the first session.
  StepValues step(std::int64_t global_step, double learning_rate, Timeline* timeline = nullptr);

  // Rewinds the examples of the evaluation; its steps come next, from 0.
  void begin_evaluation();
  StepValues evaluation_step(std::int64_t number);

  // What is the same for all: plan, facts, sizes, notices.
  const Session& first() const { return *sessions_.front(); }
  Session& first() { return *sessions_.front(); }

 private:
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<StepRunner*> evaluations_;  // of the sessions, since begin_evaluation()
  std::vector<StepValues> values_;        // of the sessions, in the step that runs
};

}  // namespace cnn::bench
