#include "tests/bench/session/small_team.h"

#include <array>

#include "bench/flags/flags.h"
#include "bench/machine/cpu_backend.h"
#include "bench/plan/job.h"
#include "bench/ranks/rank_context.h"
#include "bench/session/team.h"

namespace cnn::tests {
namespace {

bench::Config config_of_small_run(const std::vector<std::string>& more) {
  std::vector<std::string> words{
      "--device=cpu",           "--data_name=cifar10", "--model=trivial",      "--batch_size=2",
      "--num_warmup_batches=0", "--num_batches=4",     "--num_intra_threads=1"};
  words.insert(words.end(), more.begin(), more.end());
  return bench::parse_flags(words, {}).config;
}

}  // namespace

struct SmallTeam::Parts {
  explicit Parts(const std::vector<std::string>& more)
      : config(config_of_small_run(more)),
        backend(bench::make_backend(config, std::array{bench::cpu_backend()})),
        context(bench::only_rank(backend)),
        job(bench::make_job(config, context)),
        team(job, context) {}

  bench::Config config;
  bench::Backend backend;
  bench::RankContext context;
  bench::Job job;
  bench::Team team;
};

SmallTeam::SmallTeam(const std::vector<std::string>& more)
    : parts_(std::make_unique<Parts>(more)),
      config(parts_->config),
      backend(parts_->backend),
      context(parts_->context),
      job(parts_->job),
      team(parts_->team) {
  team.allocate();
}

SmallTeam::~SmallTeam() = default;

}  // namespace cnn::tests
