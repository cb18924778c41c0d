#pragma once

#include <array>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "bench/machine/cpu_backend.h"
#include "bench/plan/job.h"
#include "bench/ranks/rank_context.h"
#include "bench/session/team.h"

namespace cnn::tests {

// The flags of a run in which a step takes next to no time, then these.
inline std::vector<std::string> small_run(const std::vector<std::string>& more) {
  std::vector<std::string> words{
      "--device=cpu",           "--data_name=cifar10", "--model=trivial",      "--batch_size=2",
      "--num_warmup_batches=0", "--num_batches=4",     "--num_intra_threads=1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The team of such a run, allocated but not started.
struct SmallTeam {
  explicit SmallTeam(const std::vector<std::string>& more = {})
      : config(bench::parse_flags(small_run(more), {}).config),
        backend(bench::make_backend(config, std::array{bench::cpu_backend()})),
        context(bench::only_rank(backend)),
        job(bench::make_job(config, context)),
        team(job, context) {
    team.allocate();
  }

  bench::Config config;
  bench::Backend backend;
  bench::RankContext context;
  bench::Job job;
  bench::Team team;
};

}  // namespace cnn::tests
