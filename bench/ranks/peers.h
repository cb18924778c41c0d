#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "allreduce/connection.h"
#include "allreduce/repeated_all_gather.h"
#include "allreduce/world.h"
#include "bench/ranks/all_gather.h"
#include "bench/ranks/rank_exchange.h"
#include "bench/report/observer.h"

namespace cnn::bench {

struct Backend;
struct Config;
class Interruption;
struct MemoryLimits;
struct RankContext;

// Throws Error if these processes cannot train by --variable_update, naming what can.
// by_launcher: something like mpirun has started them.
void check_update_mode(const Config& config, int processes, bool by_launcher);

// Ranks that may use the same processors divide them: from now on this process keeps to its part.
// Where the launcher has bound each to its own there is nothing to divide. All ranks call it.
void share_processors(allreduce::World& world,
                      std::span<const allreduce::RankPlacement> placements);

// The processes of a run as one of them sees the others. All call the same functions in the same
// order; each that exchanges something throws PeerLost if a rank is lost.
class Peers {
 public:
  // From now on this process keeps to its part of the processors that it shares with others. The
  // interruption follows what all agree on. References must outlive it.
  Peers(allreduce::World& world, const Config& config, Interruption& interruption);

  int rank() const { return world_.rank(); }
  int ranks() const { return world_.ranks(); }  // processes
  const std::vector<allreduce::RankPlacement>& placements() const { return placements_; }
  int place_on_host() const;  // among the processes of its machine, by rank
  int hosts() const;

  // Throws Error that names the first line in which ranks differ.
  void compare(const std::string& text);
  // The collectives of bench/ranks/all_gather.h.
  template <class T>
  std::vector<T> all_gather(const T& mine) {
    return bench::all_gather(world_, mine);
  }
  template <class T>
  T from_first(const T& mine) {
    return bench::from_first(world_, mine);
  }
  void barrier() { bench::barrier(world_); }

  // Returns the context of this process: with its share of the memory that ranks of a machine
  // divide, and exchanging, unless several ranks of the process will. The backend and this must
  // outlive it.
  RankContext connect(const Backend& backend);
  // With --num_gpus: the way of that one of this process's ranks to all others, on its thread. All
  // ranks of all processes join at the same time.
  std::unique_ptr<allreduce::Transport> join(int number) { return towers_->join(number); }
  allreduce::Topology topology() const;  // of all ranks of all processes
  // The least that a process has.
  std::size_t least(std::size_t mine);
  // After each step: what it gave on each rank. All agree on whether to go on, and learn whether
  // all have given the same word.
  std::span<const StepValues> share(const StepValues& mine, std::uint64_t word = 0);
  bool words_are_equal() const { return equal_words_; }  // of the latest share()
  // These values become those of rank 0.
  void broadcast(std::span<float> values);
  RankExchange* exchange() { return exchange_.get(); }  // null: ranks of this process have theirs

 private:
  MemoryLimits divided_memory(const Backend& backend);
  RankContext exchanging(RankContext context);

  allreduce::World& world_;
  const Config& config_;
  Interruption& interruption_;
  std::vector<allreduce::RankPlacement> placements_;
  std::unique_ptr<allreduce::Connection> connection_;  // of processes
  std::unique_ptr<allreduce::Connection> towers_;  // of the ranks in them, where they are several
  std::unique_ptr<RankExchange> exchange_;
  std::optional<allreduce::RepeatedAllGather> all_gather_;
  std::optional<allreduce::Broadcast> broadcast_;
  std::vector<StepValues> shared_;  // by rank
  bool equal_words_ = true;
};

}  // namespace cnn::bench
