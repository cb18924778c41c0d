// Tests how a team makes its ranks' sessions; tests/bench/session/device_team_test.cpp covers ranks
// with devices of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "bench/machine/cpu_backend.h"
#include "bench/plan/job.h"
#include "bench/ranks/rank_context.h"
#include "bench/session/team.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;

// Returns a device that returns a note with its rank's number whenever the team takes notes.
Backend talkative_device(const Config& config, int rank, int ranks) {
  Backend backend = ranks == 1 ? cpu_backend().make(config)
                               : cpu_backend().make(config).for_rank(config, rank, ranks);
  backend.for_rank = talkative_device;
  backend.tuning.take_notes = [rank] {
    return std::vector<std::string>{"note " + std::to_string(rank)};
  };
  return backend;
}

std::vector<std::string> notes_of_team(int ranks) {
  const std::vector<std::string> flags{"--device=cpu",
                                       "--data_name=cifar10",
                                       "--model=trivial",
                                       "--batch_size=2",
                                       "--num_intra_threads=1",
                                       "--variable_update=independent",
                                       "--num_gpus=" + std::to_string(ranks)};
  const Config config = parse_flags(flags, {}).config;
  const Backend backend = talkative_device(config, 0, 1);
  const RankContext context = only_rank(backend);
  const Job job = make_job(config, context);
  Team team(job, context);
  team.allocate();
  team.start(0);
  return team.take_notes();
}

TEST(TeamSessions, PassOnTheNotesOfADeviceThatIsAlone) {
  EXPECT_THAT(notes_of_team(1), ElementsAre("note 0"));
}

TEST(TeamSessions, SayWhoseNotesTheyAreWhereThereAreSeveralRanks) {
  EXPECT_THAT(notes_of_team(2), ElementsAre("rank 0: note 0", "rank 1: note 1"));
}

}  // namespace
}  // namespace cnn::bench
