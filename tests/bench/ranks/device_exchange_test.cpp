// Tests two ranks whose devices, and whose NCCL, the CPU emulates.
#include "bench/ranks/device_exchange.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <utility>
#include <vector>

#include "allreduce/shared_memory.h"
#include "allreduce/world.h"
#include "bench/machine/backend.h"
#include "bench/ranks/rank_exchange.h"
#include "runtime/cpu/device.h"
#include "runtime/error.h"
#include "tests/bench/ranks/emulated_device.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

namespace nccl = allreduce::nccl;
using testing::ElementsAre;
using testing::HasSubstr;

// Returns the stream communicator that the kernels of this thread's rank got.
std::shared_ptr<StreamCommunicator>& given() {
  thread_local std::shared_ptr<StreamCommunicator> communicator;
  return communicator;
}

// Returns the poll callback of the device of this thread's rank.
std::function<void(bool waiting)>& poll_of_device() {
  thread_local std::function<void(bool waiting)> poll;
  return poll;
}

constexpr DeviceExchange emulated = [] {
  DeviceExchange exchange = tests::emulated_device;
  exchange.on_poll = [](Device& /*device*/, std::function<void(bool waiting)> poll) {
    poll_of_device() = std::move(poll);
  };
  exchange.add = [](KernelTable& /*table*/, std::shared_ptr<StreamCommunicator> communicator) {
    given() = std::move(communicator);
  };
  return exchange;
}();

// Returns a fake NCCL that doubles the data on the stream, as a sum over two equal ranks would.
nccl::Library doubling_nccl() {
  nccl::Library library;
  library.version = 22809;
  library.get_unique_id = [](nccl::UniqueId* id) {
    id->bytes[127] = 7;
    return nccl::success;
  };
  library.init_rank = [](nccl::Comm* comm, int /*ranks*/, nccl::UniqueId id, int /*rank*/,
                         nccl::Config* /*config*/) {
    static int anything = 0;
    *comm = &anything;
    return id.bytes[127] == 7 ? nccl::success : nccl::system_error;
  };
  library.all_reduce = [](const void* /*from*/, void* to, std::size_t count, int /*type*/,
                          int /*operation*/, nccl::Comm /*comm*/, void* stream) {
    static_cast<Stream*>(stream)->host([to, count] {
      for (float& value : std::span(static_cast<float*>(to), count)) {
        value *= 2;
      }
    });
    return nccl::success;
  };
  library.group_start = library.group_end = [] { return nccl::success; };
  library.async_error = [](nccl::Comm /*comm*/, nccl::Status* error) {
    return *error = nccl::success;
  };
  library.abort = [](nccl::Comm /*comm*/) { return nccl::success; };
  library.error_text = [](nccl::Status /*status*/) { return "?"; };
  return library;
}

nccl::Library no_nccl() { throw Error("NCCL cannot be loaded: it is not here"); }

struct Outcome {
  std::string text;  // the text about the exchange, or the error
  std::vector<float> sums;
  bool collective = false;
  bool polls = false, polls_after_its_end = false;  // whether the device has a poll callback
};

// Returns the results of two ranks that contribute rank + 1, rank + 2 and so on in three steps.
std::vector<Outcome> exchanged(const CommFlags& flags, OpenNccl open_of_first,
                               OpenNccl open_of_second) {
  allreduce::SharedMemory memory =
      allreduce::SharedMemory::for_threads(2, {.segment_bytes = 8U << 20U});
  std::vector<Outcome> outcomes(2);
  const auto work = [&](int rank) {
    const auto transport = memory.join(rank);
    Config config;
    config.comm = flags;
    config.comm.calibrate = LinkCalibration::off;
    RankExchange host(*transport, allreduce::ranks_on_hosts(1, 2), config, "");
    Backend backend;
    backend.device = std::make_unique<CpuDevice>();
    backend.device_exchange = &emulated;
    Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    const ChosenExchange exchange =
        exchange_on_device(only_rank(backend), config.comm, *transport, host,
                           rank == 0 ? open_of_first : open_of_second);
    outcome.text = exchange.text;
    outcome.polls = poll_of_device() != nullptr;
    outcome.collective = exchange.context.collective_exchange;
    std::vector<float> values(5);
    const std::span<float> piece(values);
    given()->prepare(0, values.size());
    const auto stream = backend.device->make_stream(Lane::communicate);
    for (int step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(rank) + 1 + static_cast<float>(i);
      }
      given()->all_reduce(*stream, 0, {&piece, 1}, 1);
      stream->synchronize();
    }
    outcome.sums = values;
    given().reset();
  };
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const std::string error = tests::error_of([&] { work(rank); });
      Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      outcome.text = error.empty() ? outcome.text : error;
      outcome.polls_after_its_end = poll_of_device() != nullptr;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return outcomes;
}

TEST(DeviceExchange, GoesByWayOfTheHostWhereTheFlagsAskForItsAlgorithms) {
  CommFlags flags;
  flags.backend = CommBackend::own;
  for (const Outcome& outcome : exchanged(flags, doubling_nccl, doubling_nccl)) {
    EXPECT_THAT(outcome.text, HasSubstr("travel to the host and are summed there"));
    EXPECT_FALSE(outcome.collective);
    EXPECT_THAT(outcome.sums, ElementsAre(3, 5, 7, 9, 11));
  }
}

TEST(DeviceExchange, IsNcclsWhereThatIsInstalled) {
  const std::vector<Outcome> outcomes = exchanged({}, doubling_nccl, doubling_nccl);
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.text, HasSubstr("NCCL 2.28.9 sums on the devices"));
    EXPECT_TRUE(outcome.collective);
  }
  EXPECT_THAT(outcomes[0].sums, ElementsAre(2, 4, 6, 8, 10));
  EXPECT_THAT(outcomes[1].sums, ElementsAre(4, 6, 8, 10, 12));
}

// A device may outlive the transport that its poll callback refers to.
TEST(DeviceExchange, LeavesNoPollCallbackOnTheDevice) {
  for (const OpenNccl open : {doubling_nccl, no_nccl}) {
    for (const Outcome& outcome : exchanged({}, open, open)) {
      EXPECT_TRUE(outcome.polls) << outcome.text;
      EXPECT_FALSE(outcome.polls_after_its_end) << outcome.text;
    }
  }
}

TEST(DeviceExchange, GoesByWayOfTheHostOnAllRanksWhereTheFirstHasNoNccl) {
  const std::vector<Outcome> outcomes = exchanged({}, no_nccl, doubling_nccl);
  EXPECT_THAT(outcomes[0].text, HasSubstr("since NCCL cannot be loaded"));
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.sums, ElementsAre(3, 5, 7, 9, 11));
  }
}

// Rank 0 is not lost, so no rank may blame it.
TEST(DeviceExchange, IsAnErrorOfAllRanksWhereNcclIsAskedForAndMissing) {
  CommFlags flags;
  flags.backend = CommBackend::nccl;
  for (const Outcome& outcome : exchanged(flags, no_nccl, no_nccl)) {
    EXPECT_EQ(outcome.text, "NCCL cannot be loaded: it is not here");
  }
  const std::vector<Outcome> outcomes = exchanged(flags, no_nccl, doubling_nccl);
  EXPECT_EQ(outcomes[0].text, "NCCL cannot be loaded: it is not here");
  EXPECT_EQ(outcomes[1].text, "--comm_backend=nccl: rank 0 cannot open NCCL");
}

TEST(DeviceExchange, RefusesFlagsOnAllRanksAlike) {
  CommFlags flags;
  flags.backend = CommBackend::mpi;
  for (const Outcome& outcome : exchanged(flags, doubling_nccl, doubling_nccl)) {
    EXPECT_THAT(outcome.text, HasSubstr("--comm_backend=mpi sums what processors have computed"));
  }
}

TEST(DeviceExchange, NamesTheRankWhoseNcclIsAnother) {
  const std::vector<Outcome> outcomes = exchanged({}, doubling_nccl, [] {
    nccl::Library older = doubling_nccl();
    older.version = 22000;
    return older;
  });
  EXPECT_EQ(outcomes[1].text,
            "rank 0 has NCCL 2.28.9, rank 1 has 2.20.0: install the same on all hosts");
}

TEST(DeviceExchange, RefusesFlagsThatContradictNccl) {
  CommFlags flags;
  EXPECT_TRUE(wants_nccl(flags));
  flags.order = allreduce::Order::tree;
  EXPECT_FALSE(wants_nccl(flags));
  flags.backend = CommBackend::nccl;
  EXPECT_THAT(tests::error_of([&] { wants_nccl(flags); }), HasSubstr("--comm_order=fast"));
  flags.order = allreduce::Order::fast;
  flags.spec = "nccl/xring";
  EXPECT_TRUE(wants_nccl(flags));
  flags.spec = "pscpu";
  EXPECT_THAT(tests::error_of([&] { wants_nccl(flags); }), HasSubstr("--all_reduce_spec"));
  flags.backend = CommBackend::automatic;
  EXPECT_FALSE(wants_nccl(flags));
  flags.backend = CommBackend::mpi;
  EXPECT_THAT(tests::error_of([&] { wants_nccl(flags); }), HasSubstr("use nccl or ring"));
}

}  // namespace
}  // namespace cnn::bench
