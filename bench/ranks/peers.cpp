#include "bench/ranks/peers.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <tuple>
#include <type_traits>

#include "bench/machine/processors.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/ranks/interruption.h"
#include "bench/ranks/rank_consistency.h"
#include "bench/ranks/rank_context.h"
#include "bench/ranks/rank_nodes.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

// The message of a rank after each step.
struct StepMessage {
  StepValues values;
  int stop_reason = 0;  // from its interruption
  std::uint64_t word = 0;
};
static_assert(std::is_trivially_copyable_v<StepMessage>);

// The processors of its host that a process may use.
struct Affinity {
  std::string kernel;
  std::vector<int> processors;

  static auto fields(auto& self) { return std::tie(self.kernel, self.processors); }
  bool operator==(const Affinity&) const = default;
};

void check_one_process(const Config& config, bool by_launcher) {
  const VariableUpdate update = config.variable_update;
  if (config.gpu.simulate) {
    return;
  }
  check(update != VariableUpdate::ddl || by_launcher,
        "Could not initialize DDL. Run this program using mpirun.");
  const bool needs_others =
      update == VariableUpdate::distributed_replicated ||
      (config.num_gpus == 1 && (update == VariableUpdate::distributed_all_reduce ||
                                update == VariableUpdate::collective_all_reduce));
  check(!needs_others || by_launcher,
        fmt::format("--variable_update={0} is for several processes: mpirun -np N cnn_benchmarks "
                    "--variable_update={0} starts them; in one process use replicated with "
                    "--num_gpus=N",
                    word_of(update)));
}

}  // namespace

void check_update_mode(const Config& config, int processes, bool by_launcher) {
  if (processes == 1) {
    check_one_process(config, by_launcher);
    return;
  }
  check(!config.gpu.simulate,
        fmt::format("--simulate runs nothing, so that one process is enough: start it without "
                    "mpirun, with --simulate_ranks={} for what {} ranks would do",
                    processes * config.num_gpus, processes * config.num_gpus));
  check(config.variable_update != VariableUpdate::parameter_server,
        fmt::format("{} processes with --variable_update=parameter_server would train {} models "
                    "that know nothing of one another: use --variable_update=horovod, or "
                    "independent if that is what you want",
                    processes, processes));
  check(config.num_gpus == 1 || config.comm.backend != CommBackend::mpi,
        fmt::format("--comm_backend=mpi adds up one device of each process: start mpirun -np {} "
                    "with --num_gpus=1",
                    processes * config.num_gpus));
  check(!config.report.take_turns, "--take_turns is for programs of one process each; drop it");
  check(!config.search.any(),
        "--find_max_batch and --find_max_image_size search on one device; start one process");
}

void share_processors(allreduce::World& world,
                      std::span<const allreduce::RankPlacement> placements) {
  const auto self = static_cast<std::size_t>(world.rank());
  const Affinity mine{.kernel = placements[self].kernel, .processors = usable_processors()};
  const std::vector<Affinity> all = allreduce::all_gather(world, mine);
  const auto alike = static_cast<int>(std::ranges::count(all, all[self]));
  const auto before =
      static_cast<int>(std::count(all.begin(), all.begin() + world.rank(), all[self]));
  if (alike > 1) {
    stay_on(part_of(mine.processors, before, alike));
  }
}

Peers::Peers(allreduce::World& world, const Config& config, Interruption& interruption)
    : world_(world), config_(config), interruption_(interruption) {
  check_update_mode(config, world.ranks(), /*by_launcher=*/true);
  interruption.follow_others();
  placements_ = allreduce::gather_placements(world, config.comm.transport == CommTransport::mpi);
  share_processors(world, placements_);
  gather_numa_nodes(world, placements_, config.num_gpus);
  shared_.resize(static_cast<std::size_t>(world.ranks()));
}

int Peers::hosts() const {
  const allreduce::Topology topology = allreduce::topology_of(placements_);
  return std::ranges::max(topology.host_of) + 1;
}

allreduce::Topology Peers::topology() const {
  return with_numa_nodes(allreduce::topology_of(placements_, config_.num_gpus), config_.comm);
}

int Peers::local_rank() const {
  const auto mine = placements_.begin() + rank();
  return static_cast<int>(std::count_if(placements_.begin(), mine, [&](const auto& placement) {
    return placement.kernel == mine->kernel;
  }));
}

std::size_t Peers::least(std::size_t mine) { return std::ranges::min(all_gather(mine)); }

// Each rank measured the free memory before any rank allocated. All ranks share one --lms plan,
// made for the smallest memory of a rank.
MemoryLimits Peers::divided_memory(const Backend& backend) {
  std::size_t bytes = divisible_bytes(backend, backend.memory);
  const std::vector<std::size_t> all = all_gather(bytes);
  std::size_t sharers = 0;
  for (std::size_t other = 0; other < all.size(); ++other) {
    if (placements_[other].kernel == placements_[static_cast<std::size_t>(rank())].kernel) {
      bytes = std::min(bytes, all[other]);
      ++sharers;
    }
  }
  if (config_.lms.enabled) {
    bytes = sharers * least(bytes / sharers);
  }
  MemoryLimits memory = share_of_memory(backend, bytes, sharers);
  if (backend.device_exchange == nullptr) {
    memory.text += ", divided among the ranks of this machine";
  }
  return memory;
}

void Peers::compare(const std::string& text) { check_equal_on_all_ranks(world_, text); }

RankContext Peers::connect(const Backend& backend) {
  RankContext context{.backend = backend,
                      .rank = rank(),
                      .ranks = ranks(),
                      .memory = divided_memory(backend),
                      .kernels = backend.kernels};
  const allreduce::SharedMemoryOptions memory =
      shared_memory_options(config_.comm, segment_bytes_of(context.memory));
  connection_ = std::make_unique<allreduce::Connection>(world_, placements_, memory);
  allreduce::Transport& transport = connection_->transport();
  all_gather_.emplace(transport, sizeof(StepMessage));
  broadcast_.emplace(transport);
  if (config_.num_gpus == 1) {
    return exchanging(std::move(context));
  }
  if (exchanges_gradients(config_)) {
    towers_ =
        std::make_unique<allreduce::Connection>(world_, placements_, memory, config_.num_gpus);
  }
  return context;
}

RankContext Peers::exchanging(RankContext context) {
  exchange_ = std::make_unique<RankExchange>(connection_->transport(), topology(), config_,
                                             context.backend.instruction_sets);
  if (config_.comm.backend == CommBackend::mpi) {
    exchange_->reduce_by(world_);
  }
  RankContext served =
      exchanges_gradients(config_) ? exchange_->serve(std::move(context)) : std::move(context);
  if (served.backend.device_exchange != nullptr && config_.lms.enabled) {
    served.memory.device = least(served.memory.device);  // after the exchange's allocations
  }
  return served;
}

std::span<const StepValues> Peers::share(const StepValues& mine, std::uint64_t word) {
  const StepMessage message{
      .values = mine, .stop_reason = interruption_.stop_reason(), .word = word};
  equal_words_ = true;
  std::memcpy(all_gather_->mine().data(), &message, sizeof(message));
  all_gather_->run();
  for (int other = ranks() - 1; other >= 0; --other) {
    StepMessage theirs;
    std::memcpy(&theirs, all_gather_->of(other).data(), sizeof(theirs));
    shared_[static_cast<std::size_t>(other)] = theirs.values;
    equal_words_ = equal_words_ && theirs.word == word;
    if (theirs.stop_reason != 0) {
      interruption_.agree(theirs.stop_reason, other);
    }
  }
  return shared_;
}

int Peers::stop_reason() const { return interruption_.stop_reason(); }

void Peers::end_for_first(int stop_reason) { interruption_.agree(stop_reason, 0); }

void Peers::broadcast(std::span<float> values) { broadcast_->run(std::as_writable_bytes(values)); }

}  // namespace cnn::bench
