#include "bench/ranks/exchange.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "bench/flags/json.h"
#include "bench/ranks/exchange_choice.h"
#include "bench/ranks/exchange_flags.h"
#include "data/json/parse_json.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

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

// Returns the algorithm by which a bucket of so many elements is reduced.
allreduce::Candidate way_by(const std::string& spec, const Topology& topology,
                            std::size_t elements = 1000) {
  const Exchange exchange = make_exchange(with_spec(spec), topology, true);
  return candidates_for(exchange.settings, elements).front();
}

TEST(Exchange, HasTheAlgorithmsOfASpecOnOneHost) {
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

TEST(Exchange, HasBothLevelsOfASpecBetweenHosts) {
  const Topology grid = ranks_on_hosts(2, 3);
  EXPECT_EQ(way_by("nccl/xring", grid).algorithm->name, "grid_of_rings");
  EXPECT_EQ(way_by("nccl/xring", grid).options.dims, (std::vector<int>{3, 2}));
  EXPECT_EQ(way_by("pscpu/pscpu", grid).algorithm->name, "grid_of_direct");
  EXPECT_EQ(way_by("nccl/rechd", grid).algorithm->name, "halving");
  EXPECT_EQ(way_by("nccl/pscpu", ranks_on_hosts(3, 1)).algorithm->name, "direct");
  EXPECT_EQ(way_by("shm", grid).algorithm->name, "shared_direct");
}

TEST(Exchange, SaysWhatHasNoEffect) {
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

TEST(Exchange, SaysWhatAnOrderOfSumsCostsRanksThatAreNotNumberedByHost) {
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

TEST(Exchange, ProvesSumsThatItsWireHoldsExactly) {
  Config config;
  config.comm.check = CommCheck::exact;
  config.precision.type = Precision::bf16;
  EXPECT_TRUE(make_exchange(config, ranks_on_hosts(256, 1), true).settings.proves);
  EXPECT_THAT(tests::error_of([&] { possible_exchange(config, ranks_on_hosts(320, 1), true, 0); }),
              HasSubstr("there are 320; use --comm_check=hash"));
  config.precision.type = Precision::fp32;
  EXPECT_TRUE(make_exchange(config, ranks_on_hosts(257, 1), true).settings.proves);
}

TEST(Exchange, SendsWhatIsComputedBetweenHostsOnly) {
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

// Eight times as fast as messages of 16 bits; who asks for messages gets them.
TEST(Exchange, SumsInPlaceOnOneHostWhateverTheWire) {
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

TEST(Exchange, ReducesInHalvesOfTheDevices) {
  Config config;
  config.comm.hierarchical_copy = true;
  const Exchange four = make_exchange(config, ranks_on_hosts(1, 4), true);
  EXPECT_EQ(candidates_for(four.settings, 100).front().options.dims, (std::vector<int>{2, 2}));
  const Exchange two = make_exchange(config, ranks_on_hosts(1, 2), true);
  EXPECT_EQ(candidates_for(two.settings, 100).front().algorithm->name, "direct");
}

TEST(Exchange, FollowsWhatIbmsLibraryWasTold) {
  Config config;
  config.variable_update = VariableUpdate::ddl;
  const auto way = [&](const char* options) {
    config.comm.ddl_options = options;
    const Exchange exchange = make_exchange(config, ranks_on_hosts(2, 2), true);
    return candidates_for(exchange.settings, 100'000).front();
  };
  EXPECT_EQ(way("-mode r:2x2x1").algorithm->name, "grid_of_rings");
  EXPECT_EQ(way("-mode r:2x2x1").options.dims, (std::vector<int>{2, 2}));
  EXPECT_EQ(way("-mode c:2x2").algorithm->name, "grid_of_direct");
  EXPECT_EQ(way("-mode r").algorithm->name, "ring");
  config.comm.ddl_options = "-mode p:2x2";
  const Exchange fastest = make_exchange(config, ranks_on_hosts(2, 2), true);
  EXPECT_TRUE(fastest.settings.rules.empty());
  EXPECT_EQ(fastest.notes.size(), 1U);
}

TEST(Exchange, CutsBucketsAsTheFlagsSay) {
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

TEST(Exchange, IsChosenWithinTheShapeThatFlagsGive) {
  const Topology topology = ranks_on_hosts(2, 4);
  const auto way = [&](const std::function<void(CommFlags&)>& set) {
    Config config;
    set(config.comm);
    return candidates_for(make_exchange(config, topology, true).settings, 1 << 20U).front();
  };
  EXPECT_EQ(way([](CommFlags& f) { f.topology = "2x4"; }).options.dims, (std::vector{2, 4}));
  EXPECT_EQ(way([](CommFlags& f) { f.rings = 2; }).options.rings, 2);
  EXPECT_EQ(way([](CommFlags& f) { f.chunk_kb = 512; }).options.chunks, 8);
  EXPECT_THAT(tests::error_of([&] { way([](CommFlags& f) { f.topology = "3x4"; }); }),
              HasSubstr("--comm_topology=3x4 is a grid of 12 ranks, but there are 8"));
}

TEST(Exchange, WaitsForRanksAsLongAsTheFlagsSay) {
  using std::chrono::milliseconds;
  using std::chrono::nanoseconds;
  CommFlags flags;
  flags.stall_abort_s = 0.25;
  flags.peer_timeout_s = 2;
  EXPECT_EQ(world_options(flags).wait_timeout, milliseconds(250));
  EXPECT_EQ(world_options(flags).heartbeat_timeout, milliseconds(2000));
  // Whoever means never gives a number that no clock can count; a wait must not end at once.
  for (const double seconds : {1e9, 1e10, 1e17, 1e300}) {
    flags.stall_abort_s = flags.peer_timeout_s = flags.start_timeout_s = seconds;
    for (const milliseconds timeout :
         {world_options(flags).wait_timeout, world_options(flags).heartbeat_timeout,
          world_options(flags).start.timeout, shared_memory_options(flags, 0).wait_timeout}) {
      EXPECT_GT(nanoseconds(timeout), std::chrono::hours(24 * 365 * 30)) << seconds;
    }
  }
}

TEST(Exchange, KeepsItsLinksInAFile) {
  const tests::TemporaryFolder folder;
  const std::string file = folder / "links.json";
  const Topology two = ranks_on_hosts(1, 2);
  EXPECT_FALSE(load_links(file, two));
  const allreduce::Links links{.latency = 1.5e-6, .memory = 7e9, .meeting = 1e-7};
  save_links(file, two, {.links = links, .of_rank = {1, 0.5}});
  EXPECT_FALSE(load_links(file, two)) << "nothing says what the hardware can do";
  save_links(file, two,
             {.links = links,
              .of_rank = {1, 0.5},
              .sources = {.rank = allreduce::Source::derived},
              .limits = {.host_of = {0, 0}, .memory = {{1e6, 7e9}}, .hop = 1e-7}});
  const allreduce::LinkSpeeds found = load_links(file, two).value();
  EXPECT_EQ(found.of_rank, (std::vector{1, 0.5}));
  const allreduce::Links& again = found.links;
  EXPECT_EQ(again.latency, links.latency);
  EXPECT_EQ(again.memory, links.memory);
  EXPECT_EQ(again.host, links.host);
  EXPECT_EQ(again.meeting, links.meeting);
  EXPECT_EQ(found.sources.rank, allreduce::Source::derived);
  EXPECT_EQ(found.sources.host, allreduce::Source::assumed);
  EXPECT_EQ(found.limits.host_of, (std::vector{0, 0}));
  EXPECT_EQ(found.limits.memory.at(0).bytes_per_second, 7e9);
  EXPECT_EQ(found.limits.hop, 1e-7);
  EXPECT_FALSE(load_links(file, ranks_on_hosts(1, 3)));
  EXPECT_FALSE(load_links(file, ranks_on_hosts(2, 1)));
  folder.write("links.json", "{\"ranks\": 2}");
  EXPECT_THAT(tests::error_of([&] { load_links(file, two); }),
              HasSubstr("--comm_calibration_file=" + file));
  EXPECT_THAT(tests::error_of([&] { save_links(folder / "no/where", two, {.links = links}); }),
              HasSubstr("cannot write it"));
}

// A file that somebody has edited, or that another program wrote.
TEST(Exchange, RefusesLinksThatCannotBe) {
  const tests::TemporaryFolder folder;
  const std::string file = folder / "links.json";
  const Topology two = ranks_on_hosts(1, 2);
  save_links(file, two,
             {.links = {.meeting = 1e-7},
              .limits = {.host_of = {0, 0}, .memory = {{1e3, 9e9}, {1e6, 7e9}}, .hop = 1e-7}});
  ASSERT_TRUE(load_links(file, two));
  const Json good = data::parse_json<Json>(tests::read_file(file));
  const auto refusal = [&](const std::function<void(Json&)>& change) {
    Json json = good;
    change(json);
    folder.write("links.json", json.dump());
    return tests::error_of([&] { load_links(file, two); });
  };
  EXPECT_EQ(refusal([](Json&) {}), "");
  EXPECT_THAT(refusal([](Json& json) {
                json["ranks"] = 0;
                json["limits"]["machine_of_rank"] = Json::array();
              }),
              HasSubstr("machine_of_rank: one number for each rank"));
  EXPECT_THAT(refusal([](Json& json) { json["meeting_seconds"] = -1; }),
              HasSubstr("meeting_seconds is negative"));
  EXPECT_THAT(refusal([](Json& json) {
                auto& memory = json["limits"]["memory"];
                std::swap(memory[0], memory[1]);
              }),
              HasSubstr("memory: sizes must ascend"));
}

TEST(Exchange, ShowsWhatWasWeighedAndMarksTheChosenWay) {
  const allreduce::Settings settings{.topology = ranks_on_hosts(1, 2),
                                     .links = {.latency = 1e-6, .rank = 4e9, .memory = 20e9}};
  const std::vector<std::string> lines = exchange_plan_lines({500, 20'000, 20'000}, settings);
  EXPECT_THAT(lines[0], HasSubstr("latency 1 us"));
  EXPECT_THAT(lines[1], HasSubstr("bucket 0 of 3: 500 elements, no less than"));
  EXPECT_THAT(lines[2], HasSubstr("x bound"));
  EXPECT_THAT(lines[3], HasSubstr("comm plan: * "));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("buckets 1-2 of 3: 20000 elements")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("  direct")));
  EXPECT_EQ(std::ranges::count_if(
                lines, [](const std::string& line) { return line.find(": * ") < line.size(); }),
            2);
  EXPECT_THAT(lines[0], HasSubstr("4 GB/s (assumed) inside a host"));
  EXPECT_THAT(lines[1], HasSubstr("(links, assumed)"));
}

// The number in the last column of a row of a plan.
double last_number(const std::string& line) { return std::stod(line.substr(line.rfind(' '))); }

TEST(Exchange, HasNoPlanBelowItsBound) {
  for (const double memory : {5e9, 10e9, 40e9}) {
    for (const int hosts : {1, 2}) {
      allreduce::Settings settings{
          .topology = ranks_on_hosts(hosts, 2),
          .peers_memory = true,
          .links = {.latency = 1e-6, .rank = 5e9, .host = 1e9, .memory = 10e9, .meeting = 1e-7},
          .limits = {.host_of = ranks_on_hosts(hosts, 2).host_of,
                     .memory = {{1e4, 4 * memory}, {1e6, memory}},
                     .line = 1e9,
                     .line_source = allreduce::Source::interface,
                     .hop = 1e-7}};
      for (const std::string& line : exchange_plan_lines({10, 20'000, 3'000'000}, settings)) {
        if (line.starts_with("comm plan: * ") || line.starts_with("comm plan:   ")) {
          EXPECT_TRUE(line.ends_with("x bound") || last_number(line) >= 1) << line;
        }
      }
    }
  }
}

TEST(Exchange, SaysHowItsSpeedsWereFound) {
  const allreduce::Settings settings{
      .topology = ranks_on_hosts(2, 1),
      .links = {.rank = 4e9, .host = 1e9},
      .sources = {.rank = allreduce::Source::derived, .host = allreduce::Source::flag},
      .limits = {.host_of = {0, 1},
                 .memory = {{0x1p14, 80e9}, {0x1p26, 8e9}},
                 .line = 1.25e9,
                 .line_source = allreduce::Source::interface,
                 .hop = 2e-6}};
  EXPECT_THAT(links_text(settings), HasSubstr("4 GB/s (derived) inside a host"));
  EXPECT_THAT(links_text(settings), HasSubstr("1 GB/s (flag) between hosts"));
  EXPECT_EQ(limits_text(settings),
            "memory 8 GB/s of each rank while all read and write 64 MiB each, 80 GB/s in caches "
            "(measured); a signal 2 us (measured); line of a host 1.25 GB/s (interface)");
  EXPECT_EQ(limits_json(settings)["line_source"], "interface");
  EXPECT_EQ(limits_text({.topology = ranks_on_hosts(2, 1)}), "");
  const allreduce::Bound bound = exchange_bound(settings, 25'000'000);
  EXPECT_EQ(distance_text(0.16, bound), "2.00 x the bound (line, interface)");
  EXPECT_THAT(distance_text(0.01, bound), HasSubstr("line was measured too low"));
  EXPECT_EQ(distance_text(1, {}), "");
}

}  // namespace
}  // namespace cnn::bench
