#include "bench/ranks/exchange.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using allreduce::ranks_on_hosts;
using allreduce::Topology;
using testing::HasSubstr;

TEST(Exchange, KeepsItsLinksInAFile) {
  const tests::TemporaryFolder folder;
  const std::string file = folder / "links.json";
  const Topology two = ranks_on_hosts(1, 2);
  EXPECT_FALSE(load_links(file, two));
  const allreduce::Links links{.latency = 1.5e-6, .memory = 7e9, .barrier = 1e-7};
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
  EXPECT_EQ(again.barrier, links.barrier);
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
  // No int holds these, and to convert them would be undefined.
  for (const char* number : {"5e+39", "-1", "1.5", "18446744073709551615"}) {
    folder.write("links.json", fmt::format(R"({{"ranks": {}, "hosts": 1}})", number));
    EXPECT_THAT(tests::error_of([&] { load_links(file, two); }),
                HasSubstr(fmt::format("ranks is {}; it is a whole number", number)));
  }
  EXPECT_THAT(tests::error_of([&] { save_links(folder / "no/where", two, {.links = links}); }),
              HasSubstr("cannot write it"));
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
          .links = {.latency = 1e-6, .rank = 5e9, .host = 1e9, .memory = 10e9, .barrier = 1e-7},
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
