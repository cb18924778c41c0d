#include "bench/ranks/exchange_flags.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/ranks/exchange.h"
#include "bench/ranks/exchange_choice.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using allreduce::ranks_on_hosts;
using allreduce::Topology;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Config with_spec(const std::string& spec) {
  Config config;
  config.comm.spec = spec;
  return config;
}

// Returns the first candidate for a bucket of `elements` elements.
allreduce::Candidate way_by(const std::string& spec, const Topology& topology,
                            std::size_t elements = 1000) {
  const Exchange exchange = make_exchange(with_spec(spec), topology, true);
  return candidates_for(exchange.settings, elements).front();
}

TEST(ExchangeFlags, HasTheAlgorithmsOfASpecOnOneHost) {
  const Topology four = ranks_on_hosts(1, 4);
  const auto name = [&](const std::string& spec) {
    return std::string(way_by(spec, four).algorithm->name);
  };
  EXPECT_EQ(name("xring"), "ring");
  EXPECT_EQ(name("xring#2"), "multi_ring");
  EXPECT_EQ(way_by("xring#2", four).options.rings, 2);
  EXPECT_EQ(name("pscpu#2"), "shuffle");
  EXPECT_EQ(way_by("pscpu#2", four).options.owners, 2);
  EXPECT_EQ(name("collective"), "ring");
  EXPECT_EQ(name("collective#2"), "multi_ring");
  EXPECT_EQ(name("rd"), "doubling");
  EXPECT_EQ(name("hd"), "halving");
  EXPECT_EQ(name("shm"), "shared");
  EXPECT_EQ(name("direct@2x2%4"), "grid_of_direct");
  EXPECT_EQ(way_by("direct@2x2%4", four).options.chunks, 4);
  EXPECT_EQ(way_by("direct#3", four).options.chunks, 3);
  EXPECT_EQ(way_by("rd:1k:direct", four, 1024).algorithm->name, "doubling");
  EXPECT_EQ(way_by("rd:1k:direct", four, 1025).algorithm->name, "direct");
  EXPECT_THROW(way_by("direct@3x2", four), Error);
  EXPECT_THROW(way_by("psgpu#5", four), Error);
}

TEST(ExchangeFlags, HasBothLevelsOfASpecBetweenHosts) {
  const Topology grid = ranks_on_hosts(2, 3);
  EXPECT_EQ(way_by("nccl/xring", grid).algorithm->name, "grid_of_rings");
  EXPECT_EQ(way_by("nccl/xring", grid).options.dims, (std::vector<int>{3, 2}));
  EXPECT_EQ(way_by("pscpu/pscpu", grid).algorithm->name, "grid_of_direct");
  EXPECT_EQ(way_by("nccl/rechd", grid).algorithm->name, "halving");
  EXPECT_EQ(way_by("nccl/pscpu", ranks_on_hosts(3, 1)).algorithm->name, "direct");
  EXPECT_EQ(way_by("shm", grid).algorithm->name, "shared_direct");
}

TEST(ExchangeFlags, SaysWhatHasNoEffect) {
  const auto notes = [](const Config& config) {
    return make_exchange(config, ranks_on_hosts(1, 2), true).notes;
  };
  EXPECT_THAT(notes(with_spec("nccl")), ElementsAre(HasSubstr("NCCL")));
  EXPECT_THAT(notes(with_spec("pscpu/pscpu")), ElementsAre(HasSubstr("nothing to do")));
  EXPECT_THAT(notes(with_spec("xring")), IsEmpty());
  Config narrow;
  narrow.precision.type = Precision::bf16;
  narrow.comm.compact = false;
  EXPECT_THAT(notes(narrow), ElementsAre(HasSubstr("--compact_gradient_transfer has no effect")));
}

TEST(ExchangeFlags, SaysWhatAnOrderOfSumsCostsRanksThatAreNotNumberedByHost) {
  Config config;
  const auto notes = [&](const Topology& topology) {
    return make_exchange(config, topology, true).notes;
  };
  const Topology dealt{{0, 1, 0, 1}};
  EXPECT_THAT(notes(dealt), IsEmpty());
  config.comm.order = allreduce::Order::tree;
  EXPECT_THAT(notes(dealt), ElementsAre(HasSubstr("--comm_order=tree")));
  EXPECT_THAT(notes(dealt), ElementsAre(HasSubstr("--map-by slot")));
  EXPECT_THAT(notes(ranks_on_hosts(2, 2)), IsEmpty());
}

// The products of these dimensions are 0 and 2 in 32 bits.
TEST(ExchangeFlags, RefusesAGridOfMoreRanksThanAnIntegerCounts) {
  Config config;
  for (const char* const grid : {"65536x65536", "3x1431655766"}) {
    config.comm.topology = grid;
    EXPECT_THAT(tests::error_of([&] { make_exchange(config, ranks_on_hosts(1, 2), true); }),
                HasSubstr("is a grid of 429496729"));
  }
}

TEST(ExchangeFlags, ProvesSumsThatItsWireHoldsExactly) {
  Config config;
  config.comm.check = CommCheck::exact;
  config.precision.type = Precision::bf16;
  EXPECT_TRUE(make_exchange(config, ranks_on_hosts(256, 1), true).settings.proves);
  EXPECT_THAT(tests::error_of([&] { possible_exchange(config, ranks_on_hosts(320, 1), true, 0); }),
              HasSubstr("there are 320; use --comm_check=hash"));
  config.precision.type = Precision::fp32;
  EXPECT_TRUE(make_exchange(config, ranks_on_hosts(257, 1), true).settings.proves);
}

TEST(ExchangeFlags, SendsWhatIsComputedBetweenHostsOnly) {
  Config config;
  config.precision.type = Precision::bf16;
  const auto wire = [&](const Topology& topology) {
    return make_exchange(config, topology, true).settings.wire;
  };
  EXPECT_EQ(wire(ranks_on_hosts(2, 1)), allreduce::Wire::bf16);
  EXPECT_EQ(wire(ranks_on_hosts(1, 2)), allreduce::Wire::f32);
  config.comm.compact = false;
  EXPECT_EQ(wire(ranks_on_hosts(2, 1)), allreduce::Wire::f32);
  config.comm.wire = allreduce::Wire::f16;
  EXPECT_EQ(wire(ranks_on_hosts(2, 1)), allreduce::Wire::f16);
}

// Shared memory is eight times as fast as 16-bit messages, so only an explicit spec selects
// messages.
TEST(ExchangeFlags, SumsInPlaceOnOneHostWhateverTheWire) {
  const Topology two = ranks_on_hosts(1, 2);
  Config config;
  config.comm.wire = allreduce::Wire::bf16;
  const Exchange exchange = make_exchange(config, two, true);
  EXPECT_EQ(exchange.settings.wire, allreduce::Wire::f32);
  EXPECT_EQ(candidates_for(exchange.settings, 1 << 20U).front().algorithm->name, "shared");
  EXPECT_THAT(exchange.notes, testing::Contains(HasSubstr("--comm_wire=bf16 has no effect")));
  EXPECT_EQ(make_exchange(config, two, false).settings.wire, allreduce::Wire::bf16);
  config.comm.spec = "direct";
  EXPECT_EQ(make_exchange(config, two, true).settings.wire, allreduce::Wire::bf16);
  EXPECT_THAT(make_exchange(config, two, true).notes, IsEmpty());
}

TEST(ExchangeFlags, ReducesInHalvesOfTheDevices) {
  Config config;
  config.comm.hierarchical_copy = true;
  const Exchange four = make_exchange(config, ranks_on_hosts(1, 4), true);
  EXPECT_EQ(candidates_for(four.settings, 100).front().options.dims, (std::vector<int>{2, 2}));
  const Exchange two = make_exchange(config, ranks_on_hosts(1, 2), true);
  EXPECT_EQ(candidates_for(two.settings, 100).front().algorithm->name, "direct");
}

TEST(ExchangeFlags, FollowsWhatIbmsLibraryWasTold) {
  Config config;
  config.variable_update = VariableUpdate::ddl;
  const auto candidate = [&](const char* options) {
    config.comm.ddl_options = options;
    const Exchange exchange = make_exchange(config, ranks_on_hosts(2, 2), true);
    return candidates_for(exchange.settings, 100'000).front();
  };
  EXPECT_EQ(candidate("-mode r:2x2x1").algorithm->name, "grid_of_rings");
  EXPECT_EQ(candidate("-mode r:2x2x1").options.dims, (std::vector<int>{2, 2}));
  EXPECT_EQ(candidate("-mode c:2x2").algorithm->name, "grid_of_direct");
  EXPECT_EQ(candidate("-mode r").algorithm->name, "ring");
  config.comm.ddl_options = "-mode p:2x2";
  const Exchange fastest = make_exchange(config, ranks_on_hosts(2, 2), true);
  EXPECT_TRUE(fastest.settings.rules.empty());
  EXPECT_EQ(fastest.notes.size(), 1U);
}

TEST(ExchangeFlags, CutsBucketsAsTheFlagsSay) {
  CommFlags flags;
  const layers::BucketSizes usual = bucket_sizes(flags), known;
  EXPECT_EQ(usual.first, known.first);
  EXPECT_EQ(usual.others, known.others);
  EXPECT_EQ(usual.last, known.last);
  EXPECT_EQ(usual.small, 0U);
  flags.small_bytes = 400;
  EXPECT_EQ(bucket_sizes(flags).small, 0U);
  flags.spec = "xring";
  EXPECT_EQ(bucket_sizes(flags).small, 400U);
  flags.repacking = 3;
  EXPECT_EQ(bucket_sizes(flags).last, SIZE_MAX);
  Config config;
  config.comm.repacking = 3;
  const Exchange exchange = make_exchange(config, ranks_on_hosts(1, 2), true);
  EXPECT_EQ(candidates_for(exchange.settings, 1000).front().options.chunks, 3);
}

TEST(ExchangeFlags, IsChosenWithinTheShapeThatFlagsGive) {
  const Topology topology = ranks_on_hosts(2, 4);
  const auto candidate = [&](const std::function<void(CommFlags&)>& set) {
    Config config;
    set(config.comm);
    return candidates_for(make_exchange(config, topology, true).settings, 1 << 20U).front();
  };
  EXPECT_EQ(candidate([](CommFlags& f) { f.topology = "2x4"; }).options.dims, (std::vector{2, 4}));
  EXPECT_EQ(candidate([](CommFlags& f) { f.rings = 2; }).options.rings, 2);
  EXPECT_EQ(candidate([](CommFlags& f) { f.chunk_kb = 512; }).options.chunks, 8);
  EXPECT_THAT(tests::error_of([&] { candidate([](CommFlags& f) { f.topology = "3x4"; }); }),
              HasSubstr("--comm_topology=3x4 is a grid of 12 ranks, but there are 8"));
}

TEST(ExchangeFlags, SayWhetherThereIsSomethingToExchange) {
  Config config;
  EXPECT_TRUE(exchanges_gradients(config));
  config.variable_update = VariableUpdate::independent;
  EXPECT_FALSE(exchanges_gradients(config));
  config = Config();
  config.mode.forward_only = true;
  EXPECT_FALSE(exchanges_gradients(config));
  config = Config();
  config.mode.eval = true;
  EXPECT_FALSE(exchanges_gradients(config));
}

TEST(ExchangeFlags, HaveOneBucketWhereNothingOverlaps) {
  CommFlags flags;
  flags.overlap = false;
  EXPECT_EQ(bucket_sizes(flags).others, layers::one_bucket().others);
}

TEST(ExchangeFlags, ReplaceTheLinksThatTheyGiveAndSayWhereTheyAreFrom) {
  const allreduce::Links known{.latency = 1, .rank = 2, .host = 3, .memory = 4, .remote_memory = 5};
  const allreduce::LinkSources measured{.rank = allreduce::Source::measured,
                                        .host = allreduce::Source::measured};
  EXPECT_EQ(with_flags(known, CommFlags()).host, 3);
  EXPECT_EQ(with_flags(measured, CommFlags()).host, allreduce::Source::measured);
  CommFlags flags;
  flags.host_gbps = 10;
  flags.latency_us = 2;
  const allreduce::Links links = with_flags(known, flags);
  EXPECT_EQ(links.host, 10e9);
  EXPECT_EQ(links.latency, 2e-6);
  EXPECT_EQ(links.rank, 2);
  EXPECT_EQ(links.memory, 4);
  EXPECT_EQ(with_flags(measured, flags).host, allreduce::Source::flag);
  EXPECT_EQ(with_flags(measured, flags).rank, allreduce::Source::measured);
}

TEST(ExchangeFlags, SayHowLongRanksWait) {
  using std::chrono::milliseconds;
  CommFlags flags;
  flags.stall_abort_s = 1.5;
  flags.peer_timeout_s = 0.25;
  flags.heartbeat_ms = 40;
  flags.start_timeout_s = 7;
  const allreduce::WorldOptions world = world_options(flags);
  EXPECT_EQ(world.wait_timeout, milliseconds(1500));
  EXPECT_EQ(world.heartbeat_timeout, milliseconds(250));
  EXPECT_EQ(world.heartbeat_interval, milliseconds(40));
  EXPECT_EQ(world.start.timeout, milliseconds(7000));
  EXPECT_EQ(world.start.flag, "--comm_start_timeout_s=7");
  const allreduce::SharedMemoryOptions memory = shared_memory_options(flags, 1000);
  EXPECT_EQ(memory.wait_timeout, milliseconds(1500));
  EXPECT_EQ(memory.heartbeat_timeout, milliseconds(250));
  EXPECT_EQ(memory.segment_bytes, 1000U);
}

TEST(ExchangeFlags, InjectAFaultIntoOneRank) {
  Config config;
  const auto fault = [&](const char* spec) {
    config.comm.fault = spec;
    return make_exchange(config, ranks_on_hosts(1, 4), true).settings.fault;
  };
  const auto delayed = fault("rank=3,what=delay:200ms,bucket=2,step=5,after=7").value();
  EXPECT_EQ(delayed.kind, allreduce::Fault::Kind::delay);
  EXPECT_EQ(delayed.rank, 3);
  EXPECT_EQ(delayed.bucket, 2U);
  EXPECT_EQ(delayed.step, 5U);
  EXPECT_EQ(delayed.after, 7U);
  EXPECT_EQ(delayed.delay, std::chrono::milliseconds(200));
  EXPECT_EQ(fault("rank=0,what=corrupt").value().kind, allreduce::Fault::Kind::corrupt);
  EXPECT_FALSE(fault("rank=0,what=flip,step=1")) << "this fault needs no exchange";
  EXPECT_EQ(tests::error_of([&] { fault("rank=4,what=kill"); }),
            "--comm_fault=rank=4,what=kill: there are 4 ranks, from 0 on");
}

TEST(ExchangeFlags, RefuseHalvesOfAnOddNumberOfDevices) {
  Config config;
  config.comm.hierarchical_copy = true;
  EXPECT_EQ(tests::error_of([&] { make_exchange(config, ranks_on_hosts(1, 3), true); }),
            "--hierarchical_copy has two halves of devices, but there are 3");
}

TEST(ExchangeFlags, RefuseShardsOfAnAlgorithmThatIsChosenByItself) {
  EXPECT_EQ(tests::error_of([] { make_exchange(with_spec("auto#4"), ranks_on_hosts(1, 4), true); }),
            "--all_reduce_spec: auto chooses shards and chunks itself");
}

TEST(ExchangeFlags, WaitForRanksAsLongAsTheySay) {
  using std::chrono::milliseconds;
  using std::chrono::nanoseconds;
  CommFlags flags;
  flags.stall_abort_s = 0.25;
  flags.peer_timeout_s = 2;
  EXPECT_EQ(world_options(flags).wait_timeout, milliseconds(250));
  EXPECT_EQ(world_options(flags).heartbeat_timeout, milliseconds(2000));
  // A user who means "never" gives a number that no clock can represent; the wait must not end at
  // once.
  for (const double seconds : {1e9, 1e10, 1e17, 1e300}) {
    flags.stall_abort_s = flags.peer_timeout_s = flags.start_timeout_s = seconds;
    for (const milliseconds timeout :
         {world_options(flags).wait_timeout, world_options(flags).heartbeat_timeout,
          world_options(flags).start.timeout, shared_memory_options(flags, 0).wait_timeout}) {
      EXPECT_GT(nanoseconds(timeout), std::chrono::hours(24 * 365 * 30)) << seconds;
    }
  }
}

}  // namespace
}  // namespace cnn::bench
