// Tests of --trace_file for several ranks: one trace with the lanes of every rank.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/program/ranks.h"

namespace cnn::tests {
namespace {

using nlohmann::json;

std::vector<std::string> traced(const TemporaryFolder& folder, const std::string& update) {
  return {"--data_name=cifar10",
          "--model=resnet20",
          "--batch_size=2",
          "--num_batches=2",
          "--num_warmup_batches=2",
          "--nomeasure_ceilings",
          "--comm_first_bucket_kb=64",
          "--comm_last_bucket_kb=64",
          "--variable_update=" + update,
          "--trace_file=" + (folder / "t.json"),
          "--html_report=" + (folder / "p.html"),
          "--result_json=" + (folder / "r.json")};
}

struct Times {
  double start = 0, end = 0;
};

// Returns, by process and name, when each reduction ran. Checks that each process has the lanes
// compute and communicate.
std::map<int, std::map<std::string, Times>> reductions_of(const json& events) {
  std::map<int, std::map<std::string, Times>> reductions;
  std::map<std::pair<int, int>, std::string> lanes;
  std::map<int, int> computed;
  for (const json& event : events) {
    const std::pair<int, int> place{event["pid"], event["tid"]};
    if (event["name"] == "thread_name") {
      lanes[place] = event["args"]["name"];
    } else if (event["ph"] == "X" && lanes[place] == "communicate") {
      const double start = event["ts"], length = event["dur"];
      reductions[place.first][event["name"]] = {start, start + length};
    } else if (event["ph"] == "X") {
      computed[place.first] += int{lanes[place] == "compute"};
    }
  }
  for (const auto& [process, count] : computed) {
    EXPECT_GT(count, 100) << "of process " << process;
  }
  return reductions;
}

// A sum has ended nowhere before it began everywhere: that holds by one clock only.
void expect_one_clock(const TemporaryFolder& folder) {
  const auto reductions =
      reductions_of(json::parse(read_file(folder / "t.json")).at("traceEvents"));
  ASSERT_EQ(reductions.size(), 2U);
  EXPECT_GT(reductions.at(0).size(), 2U);
  for (const auto& [name, first] : reductions.at(0)) {
    const Times& second = reductions.at(1).at(name);
    EXPECT_LT(first.start, second.end) << name;
    EXPECT_LT(second.start, first.end) << name;
  }
}

void expect_what_is_exposed(const TemporaryFolder& folder) {
  const json result = json::parse(read_file(folder / "r.json"));
  ASSERT_EQ(result["ranks"].size(), 2U);
  double seconds = 0;
  for (const json& step : result["steps"]) {
    seconds += step["seconds"].get<double>();
  }
  for (const json& rank : result["ranks"]) {
    const double exposed = rank["exposed_exchange_seconds"];
    EXPECT_GT(exposed, 0);
    EXPECT_LT(exposed, seconds);
    EXPECT_GT(rank["exchange_seconds"], 0);
    EXPECT_GT(rank["exchange_cpu_seconds"], 0);
  }
  EXPECT_EQ(result["profile"]["ranks"].size(), 2U);
  const std::string page = read_file(folder / "p.html");
  for (const char* const row : {"rank 0, compute", "rank 0, communicate", "rank 1, communicate"}) {
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

void expect_lanes_of_ranks(const Finished& run, const TemporaryFolder& folder) {
  ASSERT_EQ(run.status, 0) << run.err;
  const std::vector<std::string> lines = run.lines();
  EXPECT_EQ(std::ranges::count(lines, "Dumping trace to " + (folder / "t.json")), 1);
  expect_one_clock(folder);
  expect_what_is_exposed(folder);
  EXPECT_NE(run.err.find("computing stood still for"), std::string::npos) << run.err;
}

TEST(RankTrace, HasTheLanesOfAllTowersByOneClock) {
  const TemporaryFolder folder;
  auto flags = traced(folder, "replicated");
  flags.insert(flags.end(), {"--device=cpu", "--num_gpus=2"});
  expect_lanes_of_ranks(run_program(flags), folder);
}

TEST(RankTrace, IsMergedByTheFirstProcess) {
  if (const std::string why = why_no_ranks(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const TemporaryFolder folder;
  expect_lanes_of_ranks(run_ranks(2, traced(folder, "horovod")), folder);
}

}  // namespace
}  // namespace cnn::tests
