#include "allreduce/shared_memory.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <latch>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "allreduce/algorithm.h"
#include "tests/allreduce/ranks.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce {
namespace {

using namespace std::chrono_literals;
using tests::as_threads;
using tests::Job;

// Forks ranks 1, 2 and so on; this process is rank 0. A child exits with 0 if `work` returned, with
// 75 if it threw PeerLost and with 1 otherwise.
class Processes {
 public:
  Processes(int ranks, const SharedMemoryOptions& options,
            const std::function<void(Transport&)>& work)
      : memory_(SharedMemory::create(ranks, options)) {
    for (int rank = 1; rank < ranks; ++rank) {
      children_.push_back(::fork());
      if (children_.back() == 0) {
        ::_exit(child(rank, work));
      }
    }
  }
  ~Processes() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  std::unique_ptr<Transport> join() { return memory_.join(0); }
  std::vector<int> exit_codes() {
    std::vector<int> codes;
    for (const pid_t child : children_) {
      int status = 0;
      ::waitpid(child, &status, 0);
      codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    }
    children_.clear();
    return codes;
  }

 private:
  int child(int rank, const std::function<void(Transport&)>& work) {
    try {
      SharedMemory mine = SharedMemory::open(::dup(memory_.descriptor()));
      const auto transport = mine.join(rank);
      work(*transport);
      return 0;
    } catch (const PeerLost& error) {
      return error.exit_code();
    } catch (const std::exception&) {
      return 1;
    }
  }

  SharedMemory memory_;
  std::vector<pid_t> children_;
};

TEST(SharedMemory, CarriesTheSameBitsBetweenProcessesAsBetweenThreads) {
  constexpr int ranks = 4;
  const Topology topology = ranks_on_hosts(1, ranks);
  for (const std::string name : {"direct", "grid_of_direct", "shared", "doubling", "halving"}) {
    const Job job{.algorithm = name,
                  .elements = 10'007,
                  .options = {.order = Order::tree,
                              .dims = find(name).grid ? std::vector<int>{2, 2} : std::vector<int>{},
                              .chunks = 3},
                  .pieces = 3,
                  .times = 3};
    Processes processes(ranks, {.segment_bytes = std::size_t{1} << 22U},
                        [&](Transport& transport) { tests::reduce(transport, topology, job); });
    const std::vector<float> of_processes = tests::reduce(*processes.join(), topology, job);
    EXPECT_EQ(processes.exit_codes(), (std::vector<int>{0, 0, 0}));
    std::vector<float> of_threads;
    as_threads(ranks, {.segment_bytes = std::size_t{1} << 22U}, [&](Transport& transport) {
      const std::vector<float> result = tests::reduce(transport, topology, job);
      if (transport.rank() == 0) {
        of_threads = result;
      }
    });
    EXPECT_EQ(of_processes, of_threads) << name;
  }
}

TEST(SharedMemory, NamesAProcessThatHasEnded) {
  const Topology topology = ranks_on_hosts(1, 4);
  for (const std::string name : {"ring", "shared", "tree"}) {
    const Job job{.algorithm = name, .elements = 1000};
    Processes processes(4, {.segment_bytes = 1 << 20U, .wait_timeout = 20s},
                        [&](Transport& transport) {
                          tests::reduce(transport, topology, job);
                          if (transport.rank() == 2) {
                            ::raise(SIGKILL);
                          }
                          tests::reduce(transport, topology, job);
                        });
    const auto transport = processes.join();
    // A rank that has completed the first reduction may report the loss in either of the two.
    try {
      tests::reduce(*transport, topology, job);
      tests::reduce(*transport, topology, job);
      ADD_FAILURE() << "no rank noticed the loss of rank 2";
    } catch (const PeerLost& error) {
      EXPECT_EQ(error.rank(), 2) << error.what();
      EXPECT_EQ(error.exit_code(), 75);
    }
    EXPECT_EQ(processes.exit_codes(), (std::vector<int>{75, -SIGKILL, 75}));
  }
}

// Each call of idle() checks the peers at most once, and only if the last check was 2 ms ago.
TEST(SharedMemory, ReportsARankThatHasLeftAtTheSecondCheck) {
  std::latch have_left(3);
  const std::vector<std::string> errors =
      as_threads(4, {.wait_timeout = 20s}, [&](Transport& transport) {
        if (transport.rank() != 0) {
          transport.leave(std::nullopt);
          have_left.count_down();
          return;
        }
        have_left.wait();
        for (int spin = 0; spin < 200; ++spin) {
          transport.idle(1);
        }
        // Each rank may have sent a message before it left.
        for (const int waits_for : {1, 2, 3}) {
          std::this_thread::sleep_for(3ms);
          transport.idle(waits_for);
        }
        std::this_thread::sleep_for(3ms);
        transport.idle(3);
      });
  EXPECT_EQ(errors[0].find("rank 3 is lost: it has left"), 0U) << errors[0];
}

TEST(SharedMemory, KeepsTheFirstCulpritThatALeavingRankNames) {
  const std::vector<std::string> errors =
      as_threads(3, {.wait_timeout = 20s}, [](Transport& transport) {
        if (transport.rank() == 1) {
          transport.leave(2);
          transport.leave(std::nullopt);
        }
        try {
          while (transport.rank() == 0) {  // idle() ends the loop by throwing
            transport.idle(1);
          }
        } catch (const PeerLost& lost) {
          EXPECT_EQ(lost.source(), PeerLost::Source::told);
          throw;
        }
      });
  EXPECT_EQ(errors[0].find("rank 2 is lost: rank 1 has given it up"), 0U) << errors[0];
}

TEST(SharedMemory, BlamesTheLateRankNotThoseThatWaitForIt) {
  const Topology topology = ranks_on_hosts(1, 5);
  for (const std::string name : {"ring", "doubling", "shared"}) {
    const auto errors = as_threads(
        5, {.segment_bytes = 1 << 20U, .wait_timeout = 400ms}, [&](Transport& transport) {
          if (transport.rank() == 3) {
            std::this_thread::sleep_for(1500ms);
          }
          tests::reduce(transport, topology, {.algorithm = name, .elements = 5000});
        });
    for (std::size_t rank = 0; rank < errors.size(); ++rank) {
      EXPECT_EQ(errors[rank].find("rank 3 is lost: "), 0U) << name << ": " << errors[rank];
    }
  }
}

TEST(SharedMemory, ReportsThatARankHasLeft) {
  const auto errors = as_threads(3, {.segment_bytes = 1 << 20U}, [&](Transport& transport) {
    check(transport.rank() != 1, "no more memory");  // the rank's error is not one of the exchange
    tests::reduce(transport, ranks_on_hosts(1, 3), {.algorithm = "ring", .elements = 500});
  });
  EXPECT_EQ(errors[1], "no more memory");
  EXPECT_EQ(errors[0].find("rank 1 is lost: "), 0U) << errors[0];
  EXPECT_EQ(errors[2].find("rank 1 is lost: "), 0U) << errors[2];
}

TEST(SharedMemory, NamesTheRankThatNeverJoined) {
  SharedMemory memory =
      SharedMemory::for_threads(2, {.segment_bytes = 1 << 20U, .wait_timeout = 100ms});
  EXPECT_EQ(tests::error_of([&] { memory.join(0); }).find("rank 1 is lost: nothing from it for 0."),
            0U);
}

TEST(SharedMemory, AllocatesUntilTheSegmentIsFull) {
  SharedMemory memory = SharedMemory::for_threads(1, {.segment_bytes = 4 << 20U});
  const auto transport = memory.join(0);
  const Bytes allocated = transport->allocate_shared(3 << 20U);
  EXPECT_EQ(allocated.size(), 3U << 20U);
  EXPECT_TRUE(std::ranges::all_of(allocated, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(tests::error_of([&] { transport->allocate_shared(2 << 20U); }),
            "ranks share 4 MiB each, too little for 5 MiB");
  EXPECT_EQ(transport->peer_address(0, allocated.data() + 5), allocated.data() + 5);
  std::byte elsewhere{};
  EXPECT_EQ(transport->peer_address(0, &elsewhere), nullptr);
}

TEST(SharedMemory, IsSealedAndClosedOnExec) {
  const SharedMemory memory = SharedMemory::create(2, {.segment_bytes = 1 << 16U});
  const int file = memory.descriptor();
  struct stat before {};
  ASSERT_EQ(::fstat(file, &before), 0);
  EXPECT_NE(::ftruncate(file, 0), 0);
  EXPECT_NE(::ftruncate(file, 2 * before.st_size), 0);
  struct stat after {};
  ASSERT_EQ(::fstat(file, &after), 0);
  EXPECT_EQ(after.st_size, before.st_size);
  EXPECT_NE(::fcntl(file, F_GETFD) & FD_CLOEXEC, 0);
}

// NCCL and MPI collectives do not tell which rank they wait for.
TEST(SharedMemory, NamesNoRankWhenAnUnknownRankIsAwaited) {
  SharedMemoryOptions options{.segment_bytes = 1 << 16U};
  options.wait_timeout = 50ms;
  std::latch waited(1);
  const auto errors = as_threads(3, options, [&](Transport& transport) {
    if (transport.rank() != 0) {
      waited.wait();
      return;
    }
    try {
      while (true) {
        transport.idle(any_rank);
      }
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), any_rank);
      waited.count_down();
      throw;
    }
  });
  EXPECT_EQ(errors[0].find("a rank is lost, and nothing tells which one: nothing from it for"), 0U)
      << errors[0];
}

}  // namespace
}  // namespace cnn::allreduce
