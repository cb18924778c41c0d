#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "allreduce/all_gather.h"
#include "tests/allreduce/mpi/ranks.h"

namespace cnn::allreduce {
namespace {

// Waits until every rank but the stopped one has written its output, because mpirun kills the
// remaining ranks as soon as one leaves without MPI_Finalize.
void wait_for_the_others(const std::filesystem::path& folder, const World& world) {
  using std::chrono::steady_clock;
  const std::ofstream mark(folder / std::to_string(world.rank()));
  const auto all = [&] {
    int marks = 0;
    for (int rank = 0; rank + 1 < world.ranks(); ++rank) {
      marks += std::filesystem::exists(folder / std::to_string(rank)) ? 1 : 0;
    }
    return marks + 1 == world.ranks();
  };
  const auto latest = steady_clock::now() + std::chrono::seconds(60);
  while (!all() && steady_clock::now() < latest) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// tests/scripts/silent_rank.sh runs this test and reads its output, because a run that loses a rank
// always fails.
TEST(HeartbeatTimeout, MakesTheOtherRanksNameTheSilentOne) {
  if (!tests::is_unwatched()) {
    GTEST_SKIP() << "only tests/scripts/silent_rank.sh runs this test";
  }
  World& world = tests::this_world();
  const std::vector<pid_t> processes = all_gather(world, ::getpid());
  const int stopped = world.ranks() - 1;
  if (world.rank() == stopped) {
    ::raise(SIGSTOP);
    std::_Exit(EXIT_SUCCESS);
  }
  try {
    barrier(world);
  } catch (const PeerLost& lost) {
    const std::string line =
        "names rank " + std::to_string(lost.rank()) + ": " + lost.what() + "\n";
    std::cerr << line << std::flush;  // one write, because all ranks write at the same time
  }
  wait_for_the_others(tests::unwatched_in(), world);
  ::kill(processes[static_cast<std::size_t>(stopped)], SIGCONT);
  std::_Exit(EXIT_SUCCESS);
}

}  // namespace
}  // namespace cnn::allreduce
