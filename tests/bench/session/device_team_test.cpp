// Ranks on threads with a device each, played by the processor, that exchange by way of the host.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "bench/machine/cpu_backend.h"
#include "bench/plan/job.h"
#include "bench/session/session.h"
#include "bench/session/team.h"
#include "tests/bench/ranks/played_device.h"

namespace cnn::bench {
namespace {

using Flags = std::vector<std::string>;

// Each has a megabyte less than the one before it.
Backend on_own_device(const Config& config, int rank, int ranks) {
  Config own = config;
  own.lms.device_memory_mb = config.lms.device_memory_mb.value() - rank;
  Backend backend = cpu_backend().make(own);
  backend.rank = rank;
  backend.ranks = ranks;
  backend.for_rank = on_own_device;
  backend.device_exchange = &tests::played_device;
  return backend;
}

// NOLINTNEXTLINE(bugprone-exception-escape): of no function of ours.
struct Trained {
  std::vector<double> losses;
  std::vector<std::string> hashes;  // of the ranks' weights
  Json lms;
};

// Three steps of two ranks, with LMS by another plan after the second, as if copies were nearly
// free.
Trained train(const Flags& more) {
  Flags flags{"--device=cpu",           "--num_gpus=2",         "--model=resnet20",
              "--data_name=cifar10",    "--batch_size=8",       "--variable_update=replicated",
              "--comm_backend=ring",    "--comm_calibrate=off", "--num_batches=3",
              "--num_warmup_batches=0", "--optimizer=momentum", "--lms_size_threshold=8"};
  flags.insert(flags.end(), more.begin(), more.end());
  const Config config = parse_flags(flags, {}).config;
  const Backend backend = on_own_device(config, 0, 1);
  const Job job = make_job(config, backend);
  Team team(job, backend);
  team.allocate();
  team.start(0);
  Trained trained;
  for (int step = 0; step < 3; ++step) {
    trained.losses.push_back(team.step(step, 0.1).base_loss);
    if (step == 1 && config.lms.enabled) {
      Costs costs = team.first().expected_costs();
      costs.out_bytes_per_second *= 1e3;
      costs.in_bytes_per_second *= 1e3;
      const std::string before = team.first().plan_text();
      team.replan(costs);
      EXPECT_NE(team.first().plan_text(), before);
    }
  }
  trained.lms = team.first().plan_json().value("lms", Json());
  for (const Json& rank : team.ranks_json(1)) {
    trained.hashes.push_back(rank.at("weights_hash").get<std::string>());
  }
  return trained;
}

TEST(DeviceTeam, WithLmsHasTheBitsOfTheRunWithoutIt) {
  const Trained whole = train({"--device_memory_mb=1000"});
  ASSERT_EQ(whole.hashes.size(), 2U);
  EXPECT_EQ(whole.hashes[0], whole.hashes[1]);
  const Trained less = train({"--device_memory_mb=11", "--lms", "--emulate_link_gbps=4"});
  EXPECT_EQ(less.losses, whole.losses);
  EXPECT_EQ(less.hashes, whole.hashes);
  EXPECT_GT(less.lms.at("swapped_tensors").get<int>() + less.lms.at("recomputed_nodes").get<int>(),
            0);
  // All go by one plan, for the rank with the least.
  EXPECT_EQ(less.lms.at("budget_bytes").get<std::size_t>(), std::size_t{10} << 20U);
  EXPECT_GT(less.lms.at("swapped_tensors").get<int>(), 0);
}

}  // namespace
}  // namespace cnn::bench
