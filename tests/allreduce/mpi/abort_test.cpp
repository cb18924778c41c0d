#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>
#include <mpi.h>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "allreduce/mpi/abort_notice.h"
#include "tests/allreduce/mpi/ranks.h"

namespace {

constexpr int large = 1 << 20;  // bytes; MPI copies smaller messages at once

std::atomic<int> notices_sent{0};                 // notices sent by this rank
std::atomic<const char*> large_message{nullptr};  // the last large message that was handed to MPI
std::atomic<bool> hides_messages{false};          // from this rank, until it has found a notice
std::atomic<pid_t> hides_notices_of{0};           // until 100 ms after that process has ended

// Returns the message as it was when the caller handed it to MPI.
std::string& large_text() {
  static std::string text;
  return text;
}

}  // namespace

// Replaces MPI's function by way of its profiling interface, so the parameters are MPI's.
// NOLINTNEXTLINE(readability-function-size)
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  notices_sent += tag == cnn::allreduce::abort_tag ? 1 : 0;
  if (count >= large) {
    large_text().assign(static_cast<const char*>(data), static_cast<std::size_t>(count));
    large_message = static_cast<const char*>(data);
  }
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

// Replaces MPI's function likewise: messages other than notices stay unseen while they are hidden.
extern "C" int MPI_Iprobe(int from, int tag, MPI_Comm comm, int* found, MPI_Status* status) {
  const int code = PMPI_Iprobe(from, tag, comm, found, status);
  if (hides_notices_of != 0) {
    static std::chrono::steady_clock::time_point alive;
    const auto now = std::chrono::steady_clock::now();
    alive = ::kill(hides_notices_of, 0) == 0 ? now : alive;
    if (now - alive < std::chrono::milliseconds(100)) {
      *found = 0;
      return code;
    }
  }
  if (tag == cnn::allreduce::abort_tag) {
    hides_messages = hides_messages && *found == 0;
  } else if (hides_messages) {
    *found = 0;
  }
  return code;
}

namespace cnn::allreduce {
namespace {

bool soon(const std::function<bool()>& holds) {
  const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds() && std::chrono::steady_clock::now() < latest) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return holds();
}

std::filesystem::path mark(const std::string& name) {
  return std::filesystem::path(tests::aborting_in()) / name;
}
void set_mark(const std::string& name) { const std::ofstream file(mark(name)); }
bool is_marked(const std::string& name) { return std::filesystem::exists(mark(name)); }

// Waits until all ranks have written their output, because mpirun kills the others when one leaves.
void wait_for_marks(int count) {
  soon([count] {
    int marks = 0;
    for (int rank = 0; rank < tests::this_world().ranks(); ++rank) {
      marks += is_marked(std::to_string(rank)) ? 1 : 0;
    }
    return marks >= count;
  });
}

// tests/scripts/abort.sh runs the following tests and reads their output, because a run in which a
// rank aborts always fails.
TEST(AbortOverMpi, LeavesAPendingMessageUnchanged) {
  if (tests::aborting_in() == nullptr) {
    GTEST_SKIP() << "only tests/scripts/abort.sh runs this test";
  }
  World& world = tests::this_world();
  if (world.rank() != 0) {  // this rank does not receive rank 0's message
    soon([] { return is_marked("said"); });
    std::_Exit(EXIT_SUCCESS);
  }
  std::thread([&world] {
    try {
      world.gather(std::string(large, 'a'));
    } catch (const std::exception&) {
      return;
    }
  }).detach();
  const bool sent = soon([] { return large_message.load() != nullptr; });
  world.abort(1, std::string(100, 'x'));
  const char* const data = large_message;
  const bool whole = sent && std::ranges::equal(large_text(), std::span(data, large_text().size()));
  std::cerr << (whole ? "the message is whole" : "the message is lost") << std::endl;
  set_mark("said");
  std::_Exit(EXIT_SUCCESS);
}

TEST(AbortOverMpi, TakesWhatWasSentBeforeTheNotice) {
  if (tests::aborting_in() == nullptr) {
    GTEST_SKIP() << "only tests/scripts/abort.sh runs this test";
  }
  World& world = tests::this_world();
  hides_messages = world.rank() == 1;
  try {
    world.gather("a");
    std::cerr << "rank " + std::to_string(world.rank()) + " has gathered\n" << std::flush;
  } catch (const PeerLost& lost) {
    std::cerr << std::string(lost.what()) + "\n" << std::flush;
  }
  if (world.rank() == 0) {
    world.abort(0, "rank 0 fails after all have its text");
  }
  set_mark(std::to_string(world.rank()));
  wait_for_marks(world.ranks());
  std::_Exit(EXIT_SUCCESS);
}

// Rank 1 sees the end of rank 0's process before its notice.
TEST(AbortOverMpi, TakesWhatWasSentByAProcessThatHasEnded) {
  if (tests::aborting_in() == nullptr) {
    GTEST_SKIP() << "only tests/scripts/abort.sh runs this test";
  }
  World& world = tests::this_world();
  if (world.rank() == 0) {
    std::ofstream(mark("process")) << ::getpid();
    set_mark("written");
    world.gather("a");
    world.abort(0, "rank 0 fails after all have its text");
    std::_Exit(EXIT_SUCCESS);
  }
  std::signal(SIGTERM, SIG_IGN);  // mpirun's, when rank 0 has left
  soon([] { return is_marked("written"); });
  pid_t process = 0;
  std::ifstream(mark("process")) >> process;
  hides_notices_of = process;
  hides_messages = true;
  try {
    world.gather("b");
    std::cerr << "rank 1 has gathered\n" << std::flush;
  } catch (const PeerLost& lost) {
    std::cerr << std::string(lost.what()) + "\n" << std::flush;
  }
  std::_Exit(EXIT_SUCCESS);
}

TEST(AbortOverMpi, NamesNoRankInACollectiveOfMpi) {
  if (tests::aborting_in() == nullptr) {
    GTEST_SKIP() << "only tests/scripts/abort.sh runs this test";
  }
  World& world = tests::this_world();
  const int absent = world.ranks() - 1;
  if (world.rank() != absent) {
    std::vector<float> values(1000, 1);
    try {
      world.polled_all_reduce(values);
    } catch (const PeerLost& lost) {
      std::cerr << "blames " + std::to_string(lost.rank()) + ": " + lost.what() + "\n"
                << std::flush;
    }
    set_mark(std::to_string(world.rank()));
  }
  wait_for_marks(absent);
  std::_Exit(EXIT_SUCCESS);
}

// Lets the failed ranks abort at the same time. All others must learn of it in a wait that would
// not end.
void abort_at_once(const std::vector<int>& failed) {
  World& world = tests::this_world();
  int named = world.rank();
  try {
    world.gather({});  // a rank may fail while others are still in this call
    if (std::ranges::find(failed, world.rank()) != failed.end()) {
      world.abort(world.rank(), "fails on purpose");
    } else {
      world.gather({});
    }
  } catch (const PeerLost& lost) {
    named = lost.rank();
  }
  std::cerr << "names " + std::to_string(named) + " and sent " + std::to_string(notices_sent) +
                   " notices\n"
            << std::flush;
  set_mark(std::to_string(world.rank()));
  wait_for_marks(world.ranks());
  std::_Exit(EXIT_SUCCESS);
}

TEST(AbortOverMpi, ReachesAllRanksWithFewMessagesOfEach) {
  if (tests::aborting_in() == nullptr) {
    GTEST_SKIP() << "only tests/scripts/abort.sh runs this test";
  }
  abort_at_once({5});
}

TEST(AbortOverMpi, NamesOneOfSeveralThatFailAtOnce) {
  if (tests::aborting_in() == nullptr) {
    GTEST_SKIP() << "only tests/scripts/abort.sh runs this test";
  }
  abort_at_once({2, 5, 6});
}

}  // namespace
}  // namespace cnn::allreduce
