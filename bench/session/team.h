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
#include "allreduce/serialization.h"
#include "bench/flags/json.h"
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

// Returns the values of one step of a whole team: the mean over its ranks, which have equal
// batches, and the time of the slowest.
StepValues merge(std::span<const StepValues> ranks);

// Returns how the ranks of a run exchange gradients, for stderr. peers: as in Team.
std::string exchange_text(const Config& config, const Peers* peers);

// The sessions of a run, one per device, which step together: those of this process and of all
// other processes. Call in a session's order: construct, allocate, optionally restore,
// follow_first, start, then step. All processes make the same calls.
class Team {
 public:
  // Like Session. context: of this process. peers: the other processes; null: there are none.
  // References must outlive the team.
  Team(const Job& job, const RankContext& context, Peers* peers = nullptr);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void allocate();
  // Called in the first process only.
  std::optional<Restored> restore(const std::string& folder_or_path);
  // Broadcasts the variables of the first rank, which may have restored them, and returns its
  // checkpoint in each process. Throws Error if a rank failed to get them.
  std::optional<Restored> follow_first(std::optional<Restored> of_first);
  void start(std::int64_t global_step);
  // Saves on the first rank; all ranks hold the same variables.
  void save(std::int64_t global_step);
  // Copies the state that save() would write, from this process's first rank; see Session.
  void snapshot(std::int64_t global_step, VariableSnapshot& into);
  std::size_t snapshot_bytes() const;

  // timeline: if given, all sessions of this process are timed, and it receives the first one's
  // times.
  StepValues step(std::int64_t global_step, double learning_rate, Timeline* timeline = nullptr);
  // Returns the values of the latest step in this process.
  const StepValues& own() const { return own_; }
  // Returns hashes of the latest step on the first rank; null: not hashed.
  const TensorHashes* hashes() const;
  // Returns the tensors that will be hashed; null: none.
  const TensorHashes* hashed_tensors() const;
  // Sets whether later steps fill samples(), which takes time.
  void want_samples(bool wanted);
  // Returns samples of the latest step on the first rank; null unless --summary_verbosity requests
  // more than scalars.
  const StepSamples* samples() const;
  // Like Session::read_saved, on this process's first rank.
  void read_saved(const std::function<bool(const TensorInfo&)>& wanted,
                  const std::function<void(const TensorInfo&, std::span<const float>)>& tell);
  void timing_starts();
  // Returns the seconds that each rank of this process has spent in reductions since timing began;
  // 0 without an exchange.
  std::vector<double> exchange_seconds() const;
  // Returns, for each rank of this process, the reductions since the last call; the first call
  // returns none. All processes call it between the same two steps.
  std::vector<std::vector<ReductionTime>> take_reductions();
  // Returns the seconds by which this process's clock is ahead of the first one's. All processes
  // call it.
  double clock_ahead();
  // Returns the value of each rank, by rank, from those of this process's ranks. All processes call
  // it; see allreduce/all_gather.h.
  template <class T>
  std::vector<T> all_gather(const std::vector<T>& of_own_ranks) {
    std::vector<T> all;
    for (const std::string& of_process : gather_processes(allreduce::to_bytes(of_own_ranks))) {
      std::ranges::move(allreduce::from_bytes<std::vector<T>>(of_process), std::back_inserter(all));
    }
    return all;
  }
  // Makes all processes agree on whether to continue, as each step does.
  void agree();
  // Returns the lanes of the latest timed step, which all processes timed: an array with `rank`,
  // `host` and `lanes` (see lanes_json) of each rank, on a common clock.
  Json lanes_of_ranks();
  // Returns section "ranks" of the result file. Throws Error if two ranks that should have trained
  // equally differ. own_images_per_sec: of the timed steps, in this process.
  Json ranks_json(double own_images_per_sec);

  // Rewinds the examples of the evaluation; its steps follow, from 0. All ranks evaluate with the
  // first rank's running averages, unless the ranks are independent.
  void begin_evaluation();
  StepValues evaluation_step(std::int64_t number);

  // Names the first non-finite tensor of the timed program or the evaluation, with its rank if
  // there are several: among all tensors of the latest step if --check_finite_step checked it, else
  // among those still in memory. All processes call it.
  enum class Which : std::uint8_t { main, evaluation };
  FirstNonFinite first_non_finite(Which which);

  // With --lms: the first rank replans its steps with these costs, and all ranks adopt its plan.
  // Nothing: no costs were measured.
  void replan(const std::optional<Costs>& costs);

  // Returns notes for the user that arose in this process's ranks since the last call: about kernel
  // choices, and about steps that cannot be replayed.
  std::vector<std::string> take_notes();

  // Returns the session whose plan, facts, sizes and notices represent all ranks.
  const Session& first() const;
  Session& first();
  // Returns the settings of the gradient exchange; null: there is none.
  const Exchange* exchange() const;

 private:
  struct Rank;  // one session with its resources

  RankExchange* exchange_of(const Rank& rank) const;  // null: no exchange
  std::string host_of(std::size_t rank) const;        // among all ranks
  void start_ranks();
  void build(Rank& rank, int number);
  void equalize_memory();
  void connect(Rank& rank, int number);
  void make_sessions();
  struct FirstRank;  // values that other ranks adopt
  FirstRank first_rank(bool one_plan);
  bool is_first(const Rank& rank) const;  // among all ranks
  const RankContext& context_of(const Rank& rank) const;
  void check_plans();
  // Runs `work` for each rank in parallel; returns when all are done. Throws the root cause if
  // ranks failed, see rethrow_cause().
  void each(const std::function<void(Rank&)>& work);
  // Announces that this rank has stopped: by its own failure if the culprit is any_rank, else
  // because it has lost the culprit.
  static void leave(Rank& rank, int culprit);
  void only(Rank& rank, const std::function<void(Rank&)>& work);
  // Copies the first rank's values to all ranks: of all saved variables, or of running averages
  // only.
  enum class Spread : std::uint8_t { all, averages };
  void spread(Spread what);
  StepValues merged();
  void start_checks();
  void start_samples();
  void equalize_recording();
  std::uint64_t own_word() const;  // combined hash of the latest step
  void compare_hashes(std::int64_t global_step);
  struct Record {
    std::uint64_t weights_hash = 0;
    double exchange_seconds = 0, exchange_cpu_seconds = 0, images_per_sec = 0;
    double exposed_seconds = 0;  // less than 0: unknown
  };
  std::vector<std::string> gather_processes(const std::string& of_this);
  // Returns value_of(rank) for each rank of all processes, by rank.
  template <class ValueOf>
  auto of_all_ranks(const ValueOf& value_of);
  std::vector<Record> records(double own_images_per_sec);  // of all ranks

  const Job& job_;
  const RankContext& context_;
  Peers* peers_;
  allreduce::Topology topology_;  // of all ranks
  StepValues own_;
  bool wants_samples_ = false;
  std::unique_ptr<allreduce::SharedMemory> memory_;  // shared between ranks that exchange
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace cnn::bench
