#include "allreduce/limits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "allreduce/algorithm.h"
#include "allreduce/cost.h"
#include "tests/support/files.h"

namespace cnn::allreduce {
namespace {

constexpr std::array<std::size_t, 6> sizes{1, 7, 64, 1000, 20'000, 300'001};

std::vector<Topology> topologies() {
  std::vector<Topology> all;
  for (int hosts = 1; hosts <= 5; ++hosts) {
    for (const int each : {1, 2, 3, 4}) {
      if (hosts * each > 1) {
        all.push_back(ranks_on_hosts(hosts, each));
      }
    }
  }
  all.push_back(ranks_on_hosts(1, 7));
  all.push_back(ranks_on_hosts(16, 1));
  return all;
}

// One algorithm with options that it can do, for some ranks.
struct Case {
  const Algorithm* algorithm = nullptr;
  Topology topology;
  Options options;

  std::string name(std::size_t elements) const {
    return std::string(algorithm->name) + " of " + std::to_string(elements) + " among " +
           std::to_string(topology.ranks()) + " ranks on " +
           std::to_string(topology.host_of.back() + 1) + " hosts in " +
           std::to_string(options.chunks) + " chunks";
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Algorithm& algorithm : catalog()) {
    for (const Topology& topology : topologies()) {
      const int hosts = topology.host_of.back() + 1, each = topology.ranks() / hosts;
      for (const int chunks : {1, 4}) {
        Options options{.chunks = chunks, .window = chunks};
        if (algorithm.grid) {
          options.dims = {each, hosts};
        }
        const bool fits =
            (!algorithm.grid || (hosts > 1 && each > 1)) && (!algorithm.peers_memory || hosts == 1);
        if (fits) {
          cases.push_back({&algorithm, topology, options});
        }
      }
    }
  }
  return cases;
}

Links random_links(std::mt19937& random) {
  const auto draw = [&](double least, double most) {
    return least * std::pow(most / least, std::uniform_real_distribution<double>(0, 1)(random));
  };
  return {.latency = draw(1e-7, 1e-4),
          .post = draw(1e-9, 1e-5),
          .add = draw(1e-12, 1e-9),
          .rank = draw(1e8, 1e11),
          .host = draw(1e7, 1e11),
          .memory = draw(1e9, 1e11),
          .barrier = draw(1e-8, 1e-5)};
}

TEST(Bound, IsNeverUndercutByAnyAlgorithmInTheSimulator) {
  std::mt19937 random(1);
  for (const Case& one : all_cases()) {
    for (const std::size_t elements : sizes) {
      const Links links = random_links(random);
      const double seconds = simulate(
          plans_of_all(*one.algorithm, one.topology, elements, one.options), one.topology, links);
      const double least = bound(one.topology, static_cast<double>(elements * sizeof(float)), links,
                                 one.algorithm->peers_memory);
      ASSERT_GE(seconds, least * (1 - 1e-9)) << one.name(elements);
    }
  }
}

// The traffic that a list makes on each machine, counted action by action.
struct MachineTraffic {
  std::map<int, double> memory, out;  // bytes by machine
};

double bytes_in_memory(const RankPlan& plan, const Action& action) {
  const auto size = static_cast<double>(size_of(plan.wire));
  if (const auto* const send = std::get_if<Send>(&action)) {
    return size * static_cast<double>(send->range.size());  // read
  }
  if (const auto* const receive = std::get_if<Receive>(&action)) {
    return size * static_cast<double>(receive->range.size());  // written
  }
  if (const auto* const sum = std::get_if<Sum>(&action)) {
    const std::size_t written = sum->into ? plan.groups[*sum->into].size() : 1;
    return static_cast<double>((sum->operand_count + written) * sum->range.size() * sizeof(float));
  }
  return 0;
}

MachineTraffic traffic_of(const Case& one, std::size_t elements) {
  MachineTraffic traffic;
  const std::vector<RankPlan> plans =
      plans_of_all(*one.algorithm, one.topology, elements, one.options);
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const int machine = one.topology.host_of[rank];
    for (const Chunk& chunk : plans[rank].chunks) {
      for (const Action& action : chunk.actions) {
        traffic.memory[machine] += bytes_in_memory(plans[rank], action);
        const auto* const send = std::get_if<Send>(&action);
        if (send != nullptr &&
            one.topology.host_of[static_cast<std::size_t>(send->to)] != machine) {
          traffic.out[machine] += bytes_in_memory(plans[rank], action);
        }
      }
    }
  }
  return traffic;
}

// With one limit alone, the bound times its speed is the bytes that it says must move.
double bytes_that_must_move(const Case& one, std::size_t elements, bool over_the_line) {
  Limits limits{.host_of = one.topology.host_of};
  if (over_the_line) {
    limits.line = 1;
    limits.line_source = Source::measured;
  } else {
    limits.memory = {{1, 1}};
  }
  return lower_bound(limits, elements, Wire::f32).seconds;
}

TEST(LowerBound, CountsNoByteThatAListDoesNotMove) {
  for (const Case& one : all_cases()) {
    for (const std::size_t elements : sizes) {
      MachineTraffic traffic = traffic_of(one, elements);
      double max_out = 0, memory_of_a_rank = 0;
      for (const auto& [machine, bytes] : traffic.memory) {
        const auto ranks = std::ranges::count(one.topology.host_of, machine);
        memory_of_a_rank = std::max(memory_of_a_rank, bytes / static_cast<double>(ranks));
        max_out = std::max(max_out, traffic.out[machine]);
      }
      ASSERT_GE(memory_of_a_rank * (1 + 1e-12), bytes_that_must_move(one, elements, false))
          << one.name(elements);
      ASSERT_GE(max_out * (1 + 1e-12), bytes_that_must_move(one, elements, true))
          << one.name(elements);
    }
  }
}

TEST(LowerBound, IsTheLargestOfMemoryLineAndLatency) {
  Limits limits{.host_of = {0, 0, 1, 1},
                .memory = {{1e3, 40e9}, {1e6, 10e9}},
                .line = 1e9,
                .line_source = Source::interface,
                .hop = 1e-6};
  const Bound line = lower_bound(limits, 1'000'000, Wire::f32);
  EXPECT_DOUBLE_EQ(line.seconds, 2 * 0.5 * 4e6 / 1e9);
  EXPECT_EQ(line.by, "line");
  EXPECT_EQ(line.source, Source::interface);
  EXPECT_DOUBLE_EQ(lower_bound(limits, 1'000'000, Wire::bf16).seconds, line.seconds / 2);
  const Bound tiny = lower_bound(limits, 1, Wire::f32);
  EXPECT_EQ(tiny.seconds, 1e-6);
  EXPECT_EQ(tiny.by, "latency");
  limits.host_of = {0, 0, 0, 0};
  const Bound memory = lower_bound(limits, 1'000'000, Wire::f32);
  EXPECT_DOUBLE_EQ(memory.seconds, 2 * 4e6 / 10e9);
  EXPECT_EQ(memory.by, "memory");
  EXPECT_EQ(memory.source, Source::measured);
  EXPECT_EQ(lower_bound({}, 1'000'000, Wire::f32).source, Source::unknown);
}

TEST(LowerBound, TakesTheSpeedOfTheLargestSizeThatIsNotAbove) {
  const Limits limits{.memory = {{1e3, 40e9}, {1e6, 10e9}}};
  EXPECT_EQ(memory_speed(limits, 10), 40e9);
  EXPECT_EQ(memory_speed(limits, 999'999), 40e9);
  EXPECT_EQ(memory_speed(limits, 1e6), 10e9);
  EXPECT_EQ(memory_speed(limits, 1e9), 10e9);
  EXPECT_EQ(memory_speed({}, 1e6), 0);
}

void write_interface(const tests::TemporaryFolder& root, const std::string& name, bool device,
                     const std::string& state, const std::string& speed) {
  const std::filesystem::path folder = root.path() / "sys/class/net" / name;
  std::filesystem::create_directories(device ? folder / "device" : folder);
  root.write("sys/class/net/" + name + "/operstate", state + "\n");
  root.write("sys/class/net/" + name + "/speed", speed + "\n");
}

TEST(InterfaceSpeed, IsThatOfTheDevicesThatAreUp) {
  const tests::TemporaryFolder root;
  EXPECT_EQ(interface_speed(root.path()), 0);
  write_interface(root, "veth0", false, "up", "10000");
  EXPECT_EQ(interface_speed(root.path()), 0);
  write_interface(root, "eth0", true, "up", "25000");
  write_interface(root, "eth1", true, "down", "1000");
  EXPECT_EQ(interface_speed(root.path()), 25e9 / 8);
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  std::filesystem::create_directories(root.path() / port);
  root.write(port + "state", "4: ACTIVE\n");
  root.write(port + "rate", "100 Gb/sec (4X EDR)\n");
  EXPECT_EQ(interface_speed(root.path()), 125e9 / 8);
  write_interface(root, "eth2", true, "up", "-1");
  EXPECT_EQ(interface_speed(root.path()), 0);
}

}  // namespace
}  // namespace cnn::allreduce
