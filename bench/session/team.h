#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "allreduce/algorithm.h"
#include "bench/flags/json.h"
#include "bench/ranks/serialization.h"
#include "bench/report/divergence.h"
#include "bench/report/observer.h"
#include "bench/session/restored.h"
#include "runtime/graph.h"
#include "runtime/timeline.h"

namespace cnn::allreduce {
class SharedMemory;
}

namespace cnn::bench {

struct Config;
struct Job;
class Peers;
struct RankContext;
class RankExchange;
class Session;
class StepSamples;
class TensorHashes;
struct Exchange;
struct ReductionTime;
struct VariableSnapshot;

// The values of one step of a whole team: the mean over its ranks, which have equal batches; the
// time of the slowest.
StepValues merge(std::span<const StepValues> ranks);

// Returns what the ranks of a run do with their gradients, for stderr. peers: as Team takes it.
std::string exchange_text(const Config& config, const Peers* peers);

// The sessions of a run, one for each of its devices, that step as one: those of this process, and
// one in each other process. Use it in the order of a session: construct, allocate, restore if
// wanted, follow_first, start, then step. All processes call the same.
class Team {
 public:
  // As Session. context: of this process. peers: the other processes; null: there are none.
  // References must outlive the team.
  Team(const Job& job, const RankContext& context, Peers* peers = nullptr);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void allocate();
  // In the first process only.
  std::optional<Restored> restore(const std::string& folder_or_path);
  // All have the variables of the first rank, which may have restored them; each process learns
  // what. Throws Error if one has not got them.
  std::optional<Restored> follow_first(std::optional<Restored> of_first);
  void start(std::int64_t global_step);
  // All ranks hold the same variables, so the first one saves.
  void save(std::int64_t global_step);
  // Copies what save() would write, from the first rank of this process; see Session.
  void snapshot(std::int64_t global_step, VariableSnapshot& into);
  std::size_t snapshot_bytes() const;

  // timeline: if given, all sessions of this process take their times, and it gets the first's.
  StepValues step(std::int64_t global_step, double learning_rate, Timeline* timeline = nullptr);
  // Returns the values of the latest step in this process.
  const StepValues& own() const { return own_; }
  // Hashes of the latest step on the first rank; null: they were not wanted.
  const TensorHashes* hashes() const;
  // The tensors of which there will be hashes; null: of none.
  const TensorHashes* hashed_tensors() const;
  // For the steps from here on: whether they fill samples(), which takes time.
  void want_samples(bool wanted);
  // Returns those of the latest step on the first rank; null unless --summary_verbosity asks for
  // more than scalars.
  const StepSamples* samples() const;
  // As Session::read_saved, of the first rank of this process.
  void read_saved(const std::function<bool(const TensorInfo&)>& wanted,
                  const std::function<void(const TensorInfo&, std::span<const float>)>& tell);
  void timing_starts();
  // Seconds that each rank of this process has spent in reductions since the timing began; 0 where
  // nothing is exchanged.
  std::vector<double> exchange_seconds() const;
  // For each rank of this process: the reductions since the last call, or since the first one,
  // which gives none. All processes call it between the same two steps.
  std::vector<std::vector<ReductionTime>> take_reductions();
  // Seconds by which this process's clock is ahead of the first one's. All processes call it.
  double clock_ahead();
  // Returns the value of each rank, by rank, given those of this process. All processes call it;
  // see bench/ranks/all_gather.h.
  template <class T>
  std::vector<T> all_gather(const std::vector<T>& of_own_ranks) {
    std::vector<T> all;
    for (const std::string& of_process : gather_processes(to_bytes(of_own_ranks))) {
      std::ranges::move(from_bytes<std::vector<T>>(of_process), std::back_inserter(all));
    }
    return all;
  }
  // All processes agree on whether to go on, as they do in each step.
  void agree();
  // Returns the lanes of the latest step whose timeline was taken, which all processes took: an
  // array with `rank`, `host` and `lanes` (see lanes_json) of each rank, by one clock.
  Json lanes_of_ranks();
  // Section "ranks" of the result file. Throws Error if two ranks that should have trained alike
  // have not.
  // own_images_per_sec: of the timed steps, in this process.
  Json ranks_json(double own_images_per_sec);

  // Rewinds the examples of the evaluation; its steps come next, from 0.
  // All ranks evaluate what the first has of running averages, unless they are independent.
  void begin_evaluation();
  StepValues evaluation_step(std::int64_t number);

  // Names the first tensor that is not finite, of the timed program or of the evaluation, by rank
  // where there are several: of all tensors of the latest step where --check_finite_step wanted it,
  // else of what it has left in memory. All processes call it.
  enum class Which : std::uint8_t { main, evaluation };
  FirstNonFinite first_non_finite(Which which);

  // With --lms: the first rank plans its steps anew by these costs, and all go by its plan.
  // Nothing: it has not measured any.
  void replan(const std::optional<Costs>& costs);

  // Returns notes for the user that have come up in the ranks of this process since the last call:
  // of choices of kernels, and of steps that cannot be replayed.
  std::vector<std::string> take_notes();

  // Returns a session with what is the same for all: plan, facts, sizes, notices.
  const Session& first() const;
  Session& first();
  // How ranks exchange gradients; null: they do not.
  const Exchange* exchange() const;

 private:
  struct Rank;  // one session, with what it computes by

  RankExchange* exchange_of(const Rank& rank) const;  // null: it exchanges nothing
  std::string host_of(std::size_t rank) const;        // of all ranks
  void start_ranks();
  void build(Rank& rank, int number);
  void level_memory();
  void connect(Rank& rank, int number);
  void make_sessions();
  struct FirstRank;  // what the others go by
  FirstRank first_rank(bool one_plan);
  bool is_first(const Rank& rank) const;  // of all ranks
  const RankContext& context_of(const Rank& rank) const;
  void check_plans();
  // Does it for each rank, at the same time; returns when all are done. Throws what the first one
  // threw that failed by itself.
  void each(const std::function<void(Rank&)>& work);
  // This rank does no more: by itself, if the culprit is any_rank, or since it has lost that one.
  static void leave(Rank& rank, int culprit);
  void only(Rank& rank, const std::function<void(Rank&)>& work);
  // All ranks get what the first has: of all that is saved, or of running averages alone.
  enum class Spread : std::uint8_t { all, averages };
  void spread(Spread what);
  StepValues merged();
  void start_checks();
  void start_samples();
  std::uint64_t own_word() const;  // of the hashes of the latest step
  void compare_hashes(std::int64_t global_step);
  struct Record {
    std::uint64_t weights_hash = 0;
    double exchange_seconds = 0, exchange_cpu_seconds = 0, images_per_sec = 0;
    double exposed_seconds = 0;  // less than 0: not known
  };
  std::vector<std::string> gather_processes(const std::string& of_this);
  // Returns what value_of gives for each rank of all processes, by rank.
  template <class ValueOf>
  auto of_all_ranks(const ValueOf& value_of);
  std::vector<Record> records(double own_images_per_sec);  // of all ranks

  const Job& job_;
  const RankContext& context_;
  Peers* peers_;
  allreduce::Topology topology_;  // of all ranks
  StepValues own_;
  bool wants_samples_ = false;
  std::unique_ptr<allreduce::SharedMemory> memory_;  // that ranks see, where they exchange
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace cnn::bench
