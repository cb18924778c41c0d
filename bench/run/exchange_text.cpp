#include <fmt/format.h>
#include <string>
#include <string_view>

#include "bench/flags/conditions.h"
#include "bench/plan/compile.h"
#include "bench/ranks/exchange_flags.h"
#include "bench/ranks/peers.h"
#include "bench/ranks/rank_nodes.h"
#include "bench/session/team.h"

namespace cnn::bench {
namespace {

std::string ranks_and_sums_text(const Config& config, const Peers* peers) {
  const std::string_view what =
      repeats_on_all_ranks(config)
          ? "each computes the same alone, and hashes of all tensors are compared"
      : trains_nothing(config) ? "nothing is exchanged, each computes examples of its own"
      : config.variable_update == VariableUpdate::independent
          ? "nothing is exchanged, each is a copy of the run on one device"
      : config.variable_update == VariableUpdate::distributed_replicated && config.num_gpus > 1
          ? "gradients are averaged in each process and summed over processes"
      : sums_gradients(config.variable_update)
          ? "gradients and weight decay are summed, as the original's replicated does"
          : "gradients are averaged";
  if (peers == nullptr) {
    return fmt::format("{} ranks on threads of this process: {}", config.num_gpus, what);
  }
  const std::string ranks =
      config.num_gpus == 1
          ? fmt::format("{} ranks in processes", peers->ranks())
          : fmt::format("{} ranks, {} on threads of each of {} processes",
                        peers->ranks() * config.num_gpus, config.num_gpus, peers->ranks());
  const int hosts = peers->hosts();
  const std::string where = hosts == 1 ? "that share memory"
                            : hosts == peers->ranks()
                                ? "that send messages by MPI"
                                : fmt::format("that share memory on each of {} hosts", hosts);
  return fmt::format("{} {}: {}", ranks, where, what);
}

}  // namespace

std::string exchange_text(const Config& config, const Peers* peers) {
  const std::string text = ranks_and_sums_text(config, peers);
  const std::string nodes = numa_text(topology_of_run(config, peers));
  return exchanges_gradients(config) && !nodes.empty() ? text + "; " + nodes : text;
}

}  // namespace cnn::bench
