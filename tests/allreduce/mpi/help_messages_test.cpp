#include <chrono>
#include <csignal>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "allreduce/all_gather.h"
#include "tests/allreduce/mpi/ranks.h"

namespace cnn::allreduce {
namespace {

using Clock = std::chrono::steady_clock;
using ShowHelp = int (*)(const char* file, const char* topic, int has_header, ...);

bool runs_under_mpirun() {
  std::string name;
  std::ifstream("/proc/" + std::to_string(::getppid()) + "/comm") >> name;
  return name == "mpirun" || name == "orterun";
}

// Stops mpirun, which is the daemon of this host, for two seconds.
class StoppedDaemon {
 public:
  StoppedDaemon()
      : resume_([process = ::getppid()] {
          ::kill(process, SIGSTOP);
          std::this_thread::sleep_for(std::chrono::seconds(2));
          ::kill(process, SIGCONT);
        }) {
    while (state() != 'T') {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  static char state() {
    std::ifstream file("/proc/" + std::to_string(::getppid()) + "/stat");
    std::string process, name, state;
    file >> process >> name >> state;
    return state.empty() ? ' ' : state.front();
  }

  std::jthread resume_;
};

TEST(HelpMessages, DoNotWaitForADaemonThatDoesNotAnswer) {
  World& world = tests::this_world();
  const auto* const show_help = static_cast<ShowHelp*>(::dlsym(RTLD_DEFAULT, "opal_show_help"));
  if (::dlsym(RTLD_DEFAULT, "orte_show_help_norender") == nullptr || !runs_under_mpirun()) {
    GTEST_SKIP() << "this is not Open MPI 4, or another program than mpirun has started the ranks";
  }
  barrier(world);
  if (world.rank() == 0) {
    const StoppedDaemon stopped;
    const Clock::time_point start = Clock::now();
    EXPECT_EQ((*show_help)("help-mpi-btl-tcp.txt", "client connect fail", 1, "a host of this test",
                           int{::getpid()}, "no real connection", "nothing", 0),
              0);
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(1));
  }
  barrier(world);
}

}  // namespace
}  // namespace cnn::allreduce
