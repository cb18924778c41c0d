// Records the NCCL calls of the communicator with their order, memory and stream.
#include "allreduce/nccl/communicator.h"

#include <atomic>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "allreduce/transport.h"
#include "runtime/device.h"
#include "tests/support/error_of.h"

namespace cnn::allreduce::nccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The answers of the fake NCCL library and the calls that it received.
struct Script {
  std::vector<std::string> calls;
  int polls_in_progress = 0;  // how often async_error answers in_progress before success
  Status error = success;     // what async_error answers instead of success
  Status of_reduction = success;
  std::vector<std::pair<const void*, std::size_t>> reduced;
  std::vector<int> operations;
  std::vector<void*> streams;
  std::vector<float> scalars;
  int comm = 0;  // its address stands for the communicator
};

Script& script() {
  static Script the_script;
  return the_script;
}

// Counts the calls of abort, which come from a thread of their own.
std::atomic<int>& aborts() {
  static std::atomic<int> count;
  return count;
}

// Waits for the call of abort.
void expect_abort() {
  while (aborts() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(aborts(), 1);
}

Status told(const char* call) {
  script().calls.emplace_back(call);
  return script().polls_in_progress > 0 ? in_progress : success;
}

Library stand_in() {
  script() = {};
  aborts() = 0;
  Library library;
  library.version = 22809;
  library.get_unique_id = [](UniqueId* id) {
    id->bytes[0] = 42;
    return success;
  };
  library.init_rank = [](Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
    *comm = &script().comm;
    EXPECT_EQ(id.bytes[0], 42);
    EXPECT_EQ(config->blocking, 0);
    return told(("init " + std::to_string(rank) + " of " + std::to_string(ranks)).c_str());
  };
  library.all_reduce = [](const void* from, void* to, std::size_t count, int type, int operation,
                          Comm comm, void* stream) {
    EXPECT_EQ(from, to);
    EXPECT_EQ(type, float32);
    EXPECT_EQ(comm, &script().comm);
    script().reduced.emplace_back(from, count);
    script().operations.push_back(operation);
    script().streams.push_back(stream);
    told("all_reduce");
    return script().of_reduction;
  };
  library.make_scaled_sum = [](int* operation, const void* scalar, int type, int residence,
                               Comm comm) {
    EXPECT_EQ(type, float32);
    EXPECT_EQ(residence, host_scalar);
    EXPECT_EQ(comm, &script().comm);
    *operation = 17;
    script().scalars.push_back(*static_cast<const float*>(scalar));
    return success;
  };
  library.group_start = [] { return script().calls.emplace_back("start"), success; };
  library.group_end = [] { return told("end"); };
  library.async_error = [](Comm /*comm*/, Status* error) {
    Script& s = script();
    *error = s.error != success ? s.error : s.polls_in_progress > 0 ? in_progress : success;
    s.polls_in_progress -= s.polls_in_progress > 0 ? 1 : 0;
    return success;
  };
  library.abort = [](Comm comm) {
    EXPECT_EQ(comm, &script().comm);
    ++aborts();
    return success;
  };
  library.error_text = [](Status status) {
    return status == remote_error ? "remote process exited" : "invalid usage";
  };
  library.last_error = [](Comm /*comm*/) { return "socket closed"; };
  library.attach = [](Comm /*comm*/, void* memory, std::size_t /*bytes*/, void** handle) {
    *handle = memory;
    return told("attach");
  };
  library.detach = [](Comm /*comm*/, void* /*handle*/) { return told("detach"); };
  return library;
}

class NoStream final : public Stream {
 public:
  void copy(std::byte* /*to*/, const std::byte* /*from*/, std::size_t /*bytes*/) override {}
  void host(std::function<void()> /*work*/) override {}
  void record(Event& /*event*/) override {}
  void wait(Event& /*event*/) override {}
  void synchronize() override {}
};

// looks: counts the peer checks during waits.
Team team_of(const Library& library, int& looks) {
  return {.rank = 1,
          .ranks = 4,
          .id = make_id(library),
          .check_peers = [&looks](bool waiting) { looks += waiting ? 1 : 0; },
          .native = [](Stream& stream) -> void* { return &stream; }};
}

TEST(Nccl, SumsABucketInOneGroupOnItsStreamWithNeighboursJoined) {
  const Library library = stand_in();
  int looks = 0;
  {
    Communicator communicator(library, team_of(library, looks));
    std::vector<float> memory(1024);
    float* const base = memory.data();
    // Only padding separates the first two pieces; the third could lie 64 bytes closer.
    const std::vector<std::span<float>> pieces{{base, 100}, {base + 112, 16}, {base + 144, 7}};
    NoStream stream;
    communicator.all_reduce(stream, 3, pieces, 1);
    EXPECT_THAT(script().reduced, ElementsAre(std::pair<const void*, std::size_t>(base, 128),
                                              std::pair<const void*, std::size_t>(base + 144, 7)));
    EXPECT_THAT(script().operations, ElementsAre(sum, sum));
    EXPECT_THAT(script().streams, ElementsAre(&stream, &stream));
    communicator.all_reduce(stream, 4, std::span(pieces).first(1), 0.25F);
    communicator.all_reduce(stream, 4, std::span(pieces).first(1), 0.25F);
    EXPECT_EQ(script().operations.back(), 17);
    EXPECT_THAT(script().scalars, ElementsAre(0.25F)) << "each factor has one operation";
  }
  EXPECT_THAT(script().calls,
              ElementsAre("init 1 of 4", "start", "all_reduce", "all_reduce", "end", "start",
                          "all_reduce", "end", "start", "all_reduce", "end"));
  EXPECT_EQ(aborts(), 1);
  EXPECT_EQ(looks, 0);
}

TEST(Nccl, LooksAroundWhileACallIsUnderWay) {
  const Library library = stand_in();
  int looks = 0;
  script().polls_in_progress = 6;
  const Communicator communicator(library, team_of(library, looks));
  EXPECT_GT(looks, 0);
  EXPECT_EQ(script().polls_in_progress, 0);
}

TEST(Nccl, TellsItsErrorInOneLineAndEndsWhatRuns) {
  const Library library = stand_in();
  int looks = 0;
  Communicator communicator(library, team_of(library, looks));
  script().error = 5;
  EXPECT_EQ(tests::error_of([&] { communicator.poll(true); }),
            "NCCL: invalid usage: socket closed");
  expect_abort();
  NoStream stream;
  EXPECT_EQ(tests::error_of([&] { communicator.all_reduce(stream, 0, {}, 1); }),
            "the exchange has failed before: NCCL: invalid usage: socket closed");
}

TEST(Nccl, LeavesItToWhoWatchesProcessesToNameTheOneThatIsLost) {
  const Library library = stand_in();
  int looks = 0;
  Team team = team_of(library, looks);
  team.check_peers = [&looks](bool waiting) {
    if (waiting && ++looks == 3) {
      throw PeerLost(2, "rank 2 is lost");
    }
  };
  Communicator communicator(library, team);
  script().error = remote_error;
  EXPECT_EQ(tests::error_of([&] { communicator.poll(true); }), "rank 2 is lost");
  expect_abort();
}

TEST(Nccl, EndsWhatRunsWhenARankIsLostThatItHasNotMissedYet) {
  const Library library = stand_in();
  int looks = 0;
  Team team = team_of(library, looks);
  team.check_peers = [](bool waiting) {
    if (waiting) {
      throw PeerLost(0, "rank 0 is lost");
    }
  };
  Communicator communicator(library, team);
  EXPECT_EQ(tests::error_of([&] { communicator.poll(true); }), "rank 0 is lost");
  expect_abort();
}

// NCCL's abort returns only after its captured graphs are destroyed, which happens after the
// exception.
TEST(Nccl, TellsOfALostRankWhileTheAbortBlocks) {
  Library library = stand_in();
  static std::atomic<bool> graph_lives;
  graph_lives = true;
  library.abort = [](Comm /*comm*/) {
    graph_lives.wait(true);
    ++aborts();
    return success;
  };
  int looks = 0;
  Team team = team_of(library, looks);
  team.check_peers = [](bool waiting) {
    if (waiting) {
      throw PeerLost(0, "rank 0 is lost");
    }
  };
  {
    Communicator communicator(library, team);
    EXPECT_EQ(tests::error_of([&] { communicator.poll(true); }), "rank 0 is lost");
    EXPECT_EQ(aborts(), 0);
    graph_lives = false;
    graph_lives.notify_all();
  }
  EXPECT_EQ(aborts(), 1) << "the destructor waits for the abort";
}

TEST(Nccl, EndsTheGroupOfAReductionThatItRefuses) {
  const Library library = stand_in();
  int looks = 0;
  Communicator communicator(library, team_of(library, looks));
  script().of_reduction = 5;
  std::vector<float> memory(16);
  const std::span<float> piece(memory);
  NoStream stream;
  EXPECT_THAT(tests::error_of([&] {
                communicator.all_reduce(stream, 0, {&piece, 1}, 1);
              }),
              HasSubstr("invalid usage"));
  EXPECT_THAT(script().calls, ElementsAre("init 1 of 4", "start", "all_reduce", "end"));
  expect_abort();
}

TEST(Nccl, KnowsOfMemoryForAsLongAsItIsAttached) {
  Library library = stand_in();
  int looks = 0;
  std::vector<std::byte> bytes(64);
  const auto memory =
      std::make_shared<Buffer>(bytes.data(), bytes.size(), [](std::byte* /*released*/) {});
  {
    Communicator communicator(library, team_of(library, looks));
    const std::shared_ptr<void> attached = communicator.attach(memory);
    EXPECT_EQ(attached.get(), bytes.data());
  }
  EXPECT_THAT(script().calls, ElementsAre("init 1 of 4", "attach", "detach"));
  EXPECT_EQ(aborts(), 1);
  library.attach = nullptr;  // an older NCCL without registration
  Communicator communicator(library, team_of(library, looks));
  EXPECT_EQ(communicator.attach(memory), nullptr);
}

}  // namespace
}  // namespace cnn::allreduce::nccl
