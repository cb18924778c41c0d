// Tests ranks that run as threads, each with an emulated device, and exchange through the host.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "bench/machine/cpu_backend.h"
#include "bench/plan/job.h"
#include "bench/ranks/rank_context.h"
#include "bench/session/session.h"
#include "bench/session/team.h"
#include "layers/conv.h"
#include "runtime/error.h"
#include "tests/bench/ranks/emulated_device.h"

namespace cnn::bench {
namespace {

using Flags = std::vector<std::string>;

// Each rank has one megabyte less than the rank before it.
Backend on_own_device(const Config& config, int rank, int /*ranks*/) {
  Config own = config;
  own.lms.device_memory_mb = config.lms.device_memory_mb.value() - rank;
  Backend backend = cpu_backend().make(own);
  backend.for_rank = on_own_device;
  backend.device_exchange = &tests::emulated_device;
  return backend;
}

// NOLINTNEXTLINE(bugprone-exception-escape): the exception comes from the library.
struct TrainedTeam {
  std::vector<double> losses;
  std::vector<std::string> hashes;  // one hash of the weights per rank
  Json lms;
};

// Trains two ranks for three steps. With LMS, it makes another plan after the second step, as if
// copies were nearly free.
TrainedTeam train(const Flags& more) {
  Flags flags{"--device=cpu",           "--num_gpus=2",         "--model=resnet20",
              "--data_name=cifar10",    "--batch_size=8",       "--variable_update=replicated",
              "--comm_backend=ring",    "--comm_calibrate=off", "--num_batches=3",
              "--num_warmup_batches=0", "--optimizer=momentum", "--lms_size_threshold=8"};
  flags.insert(flags.end(), more.begin(), more.end());
  const Config config = parse_flags(flags, {}).config;
  const Backend backend = on_own_device(config, 0, 1);
  const RankContext context = only_rank(backend);
  const Job job = make_job(config, context);
  Team team(job, context);
  team.allocate();
  team.start(0);
  TrainedTeam trained;
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

TEST(DeviceTeam, HasTheSameBitsWithAndWithoutLms) {
  const TrainedTeam whole = train({"--device_memory_mb=1000"});
  ASSERT_EQ(whole.hashes.size(), 2U);
  EXPECT_EQ(whole.hashes[0], whole.hashes[1]);
  const TrainedTeam less = train({"--device_memory_mb=11", "--lms", "--emulate_link_gbps=4"});
  EXPECT_EQ(less.losses, whole.losses);
  EXPECT_EQ(less.hashes, whole.hashes);
  EXPECT_GT(less.lms.at("swapped_tensors").get<int>() + less.lms.at("recomputed_nodes").get<int>(),
            0);
  // All ranks use one plan, made for the rank with the least memory.
  EXPECT_EQ(less.lms.at("budget_bytes").get<std::size_t>(), std::size_t{10} << 20U);
  EXPECT_GT(less.lms.at("swapped_tensors").get<int>(), 0);
}

// Collects the notes that the ranks of a test adopted, in order.
struct AdoptedNotes {
  std::mutex mutex;
  std::vector<std::string> notes;
};
AdoptedNotes& adopted_notes() {
  static AdoptedNotes instance;
  return instance;
}

// Weight gradients take a workspace that each rank chooses for itself until it adopts another
// rank's choice.
Backend choosing_device(const Config& config, int rank, int ranks) {
  Backend backend = on_own_device(config, rank, ranks);
  backend.for_rank = choosing_device;
  const auto megabytes = std::make_shared<std::size_t>(1 + 2 * static_cast<std::size_t>(rank));
  const KernelTable plain = backend.kernels;
  backend.kernels = {};
  backend.kernels.add<layers::Conv2dBackwardWeights>(
      [plain, megabytes](const Op& op, const Signature& request) {
        std::optional<KernelSpec> spec = plain.describe(op, request);
        spec.value().workspace += *megabytes << 20U;
        return spec;
      },
      [plain](const Op& op, const Signature& signature) { return plain.make(op, signature); });
  backend.kernels.otherwise(
      [plain](const Op& op, const Signature& request) { return plain.describe(op, request); },
      [plain](const Op& op, const Signature& signature) { return plain.make(op, signature); });
  backend.tuning.choices = [megabytes] { return std::to_string(*megabytes); };
  backend.tuning.adopt = [megabytes, rank](const std::string& choices) {
    *megabytes = std::stoul(choices);
    const std::scoped_lock lock(adopted_notes().mutex);
    adopted_notes().notes.push_back(fmt::format("rank {}: {}", rank, choices));
  };
  return backend;
}

Backend stubborn_device(const Config& config, int rank, int ranks) {
  Backend backend = choosing_device(config, rank, ranks);
  backend.for_rank = stubborn_device;
  backend.tuning.adopt = [](const std::string&) {};
  return backend;
}

Config two_ranks() {
  return parse_flags(std::vector<std::string>{"--device=cpu", "--num_gpus=2", "--model=resnet20",
                                              "--data_name=cifar10", "--batch_size=8",
                                              "--variable_update=replicated", "--comm_backend=ring",
                                              "--comm_calibrate=off", "--device_memory_mb=1000"},
                     {})
      .config;
}

TEST(DeviceTeam, LetsAllRanksAdoptTheChoicesOfTheFirst) {
  adopted_notes().notes.clear();
  const Config config = two_ranks();
  const Backend backend = choosing_device(config, 0, 1);
  const RankContext context = only_rank(backend);
  const Job job = make_job(config, context);
  const Team team(job, context);
  EXPECT_EQ(adopted_notes().notes, std::vector<std::string>{"rank 1: 1"});
}

TEST(DeviceTeam, RefusesRanksWhoseGradientsLieElsewhere) {
  const Config config = two_ranks();
  const Backend backend = stubborn_device(config, 0, 1);
  const RankContext context = only_rank(backend);
  const Job job = make_job(config, context);
  try {
    const Team team(job, context);
    FAIL() << "unequal plans were accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("rank 0 has bucket "),
                                             testing::HasSubstr(" elements at "),
                                             testing::HasSubstr("rank 1 has bucket ")));
  }
}

}  // namespace
}  // namespace cnn::bench
