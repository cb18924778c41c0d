#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/report/observer.h"
#include "bench/run/restored.h"

namespace cnn::allreduce {
class PeerMemory;
}

namespace cnn::bench {

struct Backend;
struct Config;
struct Job;
class Session;

// The values of one step of a whole team: the mean over its ranks, which have equal batches; the
// time of the slowest.
StepValues merge(std::span<const StepValues> ranks);

// What the ranks of a run do with their gradients, for stderr.
std::string exchange_text(const Config& config);

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
  const Session& first() const;
  Session& first();

 private:
  struct Rank;  // one session, with what it computes by

  void build(Rank& rank, int number);
  void connect(Rank& rank, int number);
  // Does it for each rank, at the same time; returns when all are done. Throws what the first one
  // threw that failed by itself.
  void each(const std::function<void(Rank&)>& work);
  void only(Rank& rank, const std::function<void(Rank&)>& work);
  StepValues merged() const;

  const Job& job_;
  const Backend& backend_;
  std::unique_ptr<allreduce::PeerMemory> memory_;  // that ranks see, where they exchange
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace cnn::bench
