#include "bench/ranks/shared_link.h"

#include <algorithm>

#include "bench/ranks/peers.h"

namespace cnn::bench {
namespace {

// Returns the processes of the run that are on the machine of this one.
std::ptrdiff_t processes_here(const Peers* peers) {
  if (peers == nullptr) {
    return 1;
  }
  const auto& placements = peers->placements();
  const std::string& kernel = placements[static_cast<std::size_t>(peers->rank())].kernel;
  return std::ranges::count(placements, kernel, &allreduce::RankPlacement::kernel);
}

}  // namespace

Config with_shared_link(Config config, const Peers* peers) {
  const double ranks = static_cast<double>(processes_here(peers)) * config.num_gpus;
  for (double& rate : config.lms.emulate_link_gbps) {
    rate /= ranks;
  }
  return config;
}

}  // namespace cnn::bench
