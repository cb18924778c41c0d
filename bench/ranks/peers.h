#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "allreduce/all_gather.h"
#include "allreduce/connection.h"
#include "allreduce/repeated_all_gather.h"
#include "allreduce/world.h"
#include "bench/ranks/rank_exchange.h"
#include "bench/report/observer.h"

namespace cnn::bench {

struct Backend;
struct Config;
class Interruption;
struct MemoryLimits;
struct RankContext;

// Throws Error if these processes cannot train by --variable_update, with the modes that can.
// by_launcher: a launcher such as mpirun started them.
void check_update_mode(const Config& config, int processes, bool by_launcher);

// Divides processors among ranks that may use the same ones and restricts this process to its part.
// If the launcher has bound each rank to separate processors, there is nothing to divide. All ranks
// call it.
void share_processors(allreduce::World& world,
                      std::span<const allreduce::RankPlacement> placements);

// This process's view of all processes of a run. All processes call the same functions in the same
// order; functions that communicate throw PeerLost if a rank is lost.
class Peers {
 public:
  // Restricts this process to its part of the processors that it shares with others. The
  // interruption follows the agreement of all processes. References must outlive the object.
  Peers(allreduce::World& world, const Config& config, Interruption& interruption);

  int rank() const { return world_.rank(); }
  int ranks() const { return world_.ranks(); }  // number of processes
  const std::vector<allreduce::RankPlacement>& placements() const { return placements_; }
  int local_rank() const;  // index among the processes of its host, by rank
  int hosts() const;

  // Throws Error with the first line in which ranks differ.
  void compare(const std::string& text);
  // The collectives of allreduce/all_gather.h.
  template <class T>
  std::vector<T> all_gather(const T& mine) {
    return allreduce::all_gather(world_, mine);
  }
  template <class T>
  T from_first(const T& mine) {
    return allreduce::from_first(world_, mine);
  }
  void barrier() { allreduce::barrier(world_); }

  // Returns the context of this process: with its share of the memory that ranks of a host divide,
  // and with the exchange, unless several ranks of the process do that. The backend and this object
  // must outlive the context.
  RankContext connect(const Backend& backend);
  // With --num_gpus: returns the transport of rank `number` of this process to all others; called
  // on its thread. All ranks of all processes join at the same time.
  std::unique_ptr<allreduce::Transport> join(int number) { return towers_->join(number); }
  allreduce::Topology topology() const;  // of all ranks of all processes
  // Returns the minimum over all processes.
  std::size_t least(std::size_t mine);
  // All-gathers the values of a step on each rank. All processes agree on whether to continue, and
  // learn whether all ranks passed the same word.
  std::span<const StepValues> share(const StepValues& mine, std::uint64_t word = 0);
  bool words_are_equal() const { return equal_words_; }  // of the latest share()
  // Returns why this process wants to end, see Interruption::stop_reason().
  int stop_reason() const;
  // Ends the run for the reason of rank 0, once every rank has called this with that reason.
  void end_for_first(int stop_reason);
  // These values become those of rank 0.
  void broadcast(std::span<float> values);
  // null: the ranks of this process have their own
  RankExchange* exchange() { return exchange_.get(); }

 private:
  MemoryLimits divided_memory(const Backend& backend);
  RankContext exchanging(RankContext context);

  allreduce::World& world_;
  const Config& config_;
  Interruption& interruption_;
  std::vector<allreduce::RankPlacement> placements_;
  std::unique_ptr<allreduce::Connection> connection_;  // of processes
  std::unique_ptr<allreduce::Connection> towers_;  // of the ranks in processes with several ranks
  std::unique_ptr<RankExchange> exchange_;
  std::optional<allreduce::RepeatedAllGather> all_gather_;
  std::optional<allreduce::Broadcast> broadcast_;
  std::vector<StepValues> shared_;  // by rank
  bool equal_words_ = true;
};

}  // namespace cnn::bench
