#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

#include "tests/allreduce/mpi/ranks.h"

namespace cnn::allreduce {
namespace {

// Run by tests/scripts/silent_rank.sh, which reads what it prints: no run ends well in which a
// rank has been lost.
TEST(Silence, OfARankMakesTheOthersNameIt) {
  if (!tests::is_unwatched()) {
    GTEST_SKIP() << "for a run of its own";
  }
  World& world = tests::this_world();
  const std::vector<std::string> processes = world.gather(std::to_string(::getpid()));
  const int stopped = world.ranks() - 1;
  if (world.rank() == stopped) {
    ::raise(SIGSTOP);
    std::_Exit(EXIT_SUCCESS);
  }
  try {
    world.gather({});
  } catch (const PeerLost& lost) {
    std::cerr << "names rank " << lost.rank() << ": " << lost.what() << std::endl;
  }
  ::kill(std::stoi(processes[static_cast<std::size_t>(stopped)]), SIGCONT);
  std::_Exit(EXIT_SUCCESS);
}

}  // namespace
}  // namespace cnn::allreduce
