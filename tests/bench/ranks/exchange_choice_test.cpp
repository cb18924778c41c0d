#include "bench/ranks/exchange_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "allreduce/choose.h"
#include "bench/flags/flags.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using allreduce::ranks_on_hosts;
using allreduce::Topology;
using testing::HasSubstr;

using Words = std::vector<std::string>;

// Returns the configuration of one of several processes with these flags.
Config config_of(const Words& words) {
  Words all{"--device=cpu", "--variable_update=replicated"};
  all.insert(all.end(), words.begin(), words.end());
  return parse_flags(all, {.launched = true}).config;
}

// Returns why the exchange refuses these flags, or "" if it accepts them.
std::string refusal(const Words& words, const Topology& topology, std::size_t elements = 0) {
  return tests::error_of(
      [&] { possible_exchange(config_of(words), topology, /*peers_memory=*/true, elements); });
}

// Returns the words with the flags after "; use " in place of the given ones.
Words as_suggested(const Words& words, const std::string& error) {
  static const std::regex flag("(--[a-z_]+=)(\"([^\"]*)\"|[^ ]+)");
  Words all = words;
  const std::string rest = error.substr(std::min(error.size(), error.rfind("; use ")));
  for (std::sregex_iterator at(rest.begin(), rest.end(), flag); at != std::sregex_iterator();
       ++at) {
    const std::string name = (*at)[1];
    std::erase_if(all, [&](const std::string& word) { return word.starts_with(name); });
    all.push_back(name + ((*at)[3].matched ? (*at)[3].str() : (*at)[2].str()));
  }
  return all;
}

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) {
    text += word + " ";
  }
  return text;
}

// Returns the Cartesian product of the flags' values; "" omits the flag.
std::vector<Words> all_of(const std::vector<Words>& values) {
  std::vector<Words> all{{}};
  for (const Words& of_flag : values) {
    std::vector<Words> longer;
    for (const Words& words : all) {
      for (const std::string& value : of_flag) {
        longer.push_back(words);
        if (!value.empty()) {
          longer.back().push_back(value);
        }
      }
    }
    all = longer;
  }
  return all;
}

std::vector<Topology> topologies() {
  return {ranks_on_hosts(1, 2), ranks_on_hosts(1, 3), ranks_on_hosts(1, 4),
          ranks_on_hosts(2, 2), ranks_on_hosts(3, 1), Topology{{0, 1, 0, 1}}};
}

// Returns how many of these command lines are refused. Each refusal must suggest flags that are
// then accepted.
int refused_with_what_works(const std::vector<Words>& values, std::size_t elements) {
  int refused = 0;
  for (const Topology& topology : topologies()) {
    for (const Words& words : all_of(values)) {
      const std::string error = refusal(words, topology, elements);
      if (!error.empty()) {
        ++refused;
        EXPECT_THAT(error, HasSubstr("; use --")) << joined(words);
        EXPECT_EQ(refusal(as_suggested(words, error), topology, elements), "")
            << joined(words) << "of " << topology.ranks() << " ranks: " << error;
      }
    }
  }
  return refused;
}

TEST(ExchangeChoice, OffersRingsThatKeepTheOrderOfSums) {
  for (const int ranks : {2, 4}) {
    EXPECT_THAT(refusal({"--comm_rings=2", "--comm_order=tree"}, ranks_on_hosts(1, ranks)),
                testing::EndsWith("; use --comm_rings=1"));
  }
  EXPECT_EQ(refusal({"--comm_rings=2"}, ranks_on_hosts(1, 2)), "");
}

TEST(ExchangeChoice, RefusesAShapeWithOneThatWorks) {
  EXPECT_GT(refused_with_what_works({{"", "--comm_topology=2x2", "--comm_topology=4",
                                      "--comm_rings=1", "--comm_rings=2", "--comm_rings=100"},
                                     {"", "--comm_chunk_kb=1", "--gradient_repacking=65"},
                                     {"", "--comm_order=tree", "--comm_order=rank"},
                                     {"", "--comm_wire=bf16"}},
                                    1 << 18U),
            100);
}

TEST(ExchangeChoice, RefusesASpecWithOneThatWorks) {
  EXPECT_GT(refused_with_what_works(
                {{"--all_reduce_spec=xring", "--all_reduce_spec=xring#70",
                  "--all_reduce_spec=direct@2x2%100", "--all_reduce_spec=pscpu#4",
                  "--all_reduce_spec=shm", "--all_reduce_spec=tree%40", "--all_reduce_spec=auto#2",
                  "--all_reduce_spec=nccl/xring", "--all_reduce_spec=rd:1k:direct@3x2:1M:ring@7"},
                 {"", "--comm_order=tree", "--comm_order=rank"},
                 {"", "--comm_wire=bf16"}},
                1 << 18U),
            50);
}

TEST(ExchangeChoice, RefusesHalvesOfDevicesAndDdlModesWithWhatWorks) {
  EXPECT_GT(refused_with_what_works(
                {{"--hierarchical_copy"}, {"", "--comm_order=tree"}, {"", "--comm_rings=3"}}, 0),
            1);
  EXPECT_GT(refused_with_what_works({{"--variable_update=ddl"},
                                     {"--ddl_options=-mode r", "--ddl_options=-mode c:2x2",
                                      "--ddl_options=-mode r:2x2x1"},
                                     {"", "--comm_order=tree"}},
                                    0),
            10);
}

TEST(ExchangeChoice, SuggestsBeforeItKnowsTheBucketsWhatTheyTakeToo) {
  const Words words{"--comm_chunk_kb=1", "--comm_rings=2", "--comm_order=tree"};
  const Topology four = ranks_on_hosts(1, 4);
  const std::string error = refusal(words, four);
  EXPECT_NE(error, "");
  EXPECT_EQ(refusal(as_suggested(words, error), four, (8U << 20U) / sizeof(float)), "") << error;
}

// A bucket has at most 64 chunks, and 64 chunks of 16 KiB hold exactly its 1024 KiB.
TEST(ExchangeChoice, NamesTheSmallestChunksThatABucketAllows) {
  EXPECT_THAT(refusal({"--comm_chunk_kb=1"}, ranks_on_hosts(2, 1), 1 << 18U),
              testing::EndsWith("a bucket of 1024 KiB in at most 64 chunks; use "
                                "--comm_chunk_kb=16"));
}

}  // namespace
}  // namespace cnn::bench
