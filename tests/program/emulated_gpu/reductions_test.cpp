#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/emulated_gpu/several_devices.h"
#include "tests/program/ranks.h"
#include "tests/support/files.h"

// all_reduce_benchmark --device=gpu on emulated devices: by NCCL, which is emulated too, and by way
// of the host; in one process and in several.

namespace cnn::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using Strings = std::vector<std::string>;

class GpuReductions : public SeveralDevices {};
class GpuReductionsOfProcesses : public SeveralDevicesOfProcesses {};

// processes: 0 starts the benchmark without mpirun, with a thread for each device.
Finished reduce(int processes, const Strings& more) {
  const std::string program = "all_reduce_benchmark";
  Strings flags{"--device=gpu", "--comm_calibrate=off"};
  flags.insert(flags.end(), more.begin(), more.end());
  if (processes > 0) {
    return run_ranks_of(program, processes, flags);
  }
  flags.insert(flags.begin(), CNN_EMULATED_FOLDER "/" + program);
  return run_and(
      flags, [](const Finished&) { return false; }, [] {});
}

Strings table_of(const std::string& backend, const Strings& more) {
  Strings flags{
      "--comm_backend=" + backend, "-b", "4", "-e", "256K", "-f", "256", "-n", "1", "-w", "1"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// The cells of the table by column, one map for each row.
std::vector<std::map<std::string, std::string>> rows_of(const Finished& run) {
  std::vector<std::map<std::string, std::string>> rows;
  Strings columns;
  for (const std::string& line : run.lines()) {
    const Strings words = words_of(line);
    if (words.size() > 2 && words[0] == "bytes") {
      columns = words;
    } else if (words.size() == columns.size() && !words.empty()) {
      std::map<std::string, std::string>& row = rows.emplace_back();
      for (std::size_t i = 0; i < words.size(); ++i) {
        row[columns[i]] = words[i];
      }
    }
  }
  return rows;
}

// Three sizes, from one number to 256 KiB. expected: cells of each row.
void expect_right_sums(int processes, int ranks, const Strings& flags,
                       const std::map<std::string, std::string>& expected) {
  const TemporaryFolder folder;
  Strings all = flags;
  all.insert(all.end(), {"-J", folder / "rows.json"});
  const Finished run = reduce(processes, all);
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("  errors 0\n"));
  EXPECT_THAT(run.err, HasSubstr("device: NVIDIA H100"));
  const auto rows = rows_of(run);
  ASSERT_EQ(rows.size(), 3U) << run.out;
  EXPECT_EQ(rows[0].at("bytes"), "4");
  EXPECT_EQ(rows[2].at("bytes"), "262144");
  const json result = json::parse(read_file(folder / "rows.json"));
  EXPECT_EQ(result.at("ranks"), ranks);
  ASSERT_EQ(result.at("rows").size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [column, cell] : expected) {
      EXPECT_EQ(rows[i].at(column), cell) << column << " of\n" << run.out;
    }
    EXPECT_EQ(rows[i].at("err"), "0") << run.out;
    EXPECT_EQ(rows[i].count("memcpy_us"), 0U) << "the host's copies say nothing of a device";
    const json& row = result.at("rows")[i];
    EXPECT_EQ(row.at("algorithm"), rows[i].at("algo"));
    EXPECT_EQ(row.at("rings").is_null(), rows[i].at("algo") == "nccl");
    EXPECT_EQ(row.at("error"), 0);
    EXPECT_GT(row.at("median_seconds"), 0);
  }
}

const std::map<std::string, std::string> by_nccl{
    {"algo", "nccl"}, {"dims", "-"}, {"rings", "-"}, {"K", "-"}, {"wire", "fp32"}, {"limit", "-"}};

TEST_F(GpuReductions, AreRightByNcclForTwoAndThreeDevices) {
  for (const int devices : {2, 3}) {
    set_devices(devices);
    expect_right_sums(0, devices, table_of("nccl", {"--num_gpus=" + std::to_string(devices)}),
                      by_nccl);
  }
}

TEST_F(GpuReductions, AreRightByTheHostForTwoAndThreeDevices) {
  for (const int devices : {2, 3}) {
    set_devices(devices);
    const std::string flag = "--num_gpus=" + std::to_string(devices);
    expect_right_sums(0, devices, table_of("ring", {flag}), {{"algo", "shared"}});
    expect_right_sums(0, devices, table_of("ring", {flag, "--all_reduce_spec=xring"}),
                      {{"algo", "ring"}, {"rings", "1"}});
  }
}

TEST_F(GpuReductionsOfProcesses, AreRightByNcclAndByTheHost) {
  expect_right_sums(2, 2, table_of("nccl", {}), by_nccl);
  expect_right_sums(2, 2, table_of("ring", {}), {{"algo", "shared"}});
  expect_right_sums(2, 2, table_of("ring", {"--comm_transport=mpi", "--comm_wire=bf16"}),
                    {{"wire", "bf16"}});
}

TEST_F(GpuReductionsOfProcesses, SayHowTheyGoAndNothingThatNcclDoesNotDo) {
  const Finished nccl = reduce(2, table_of("auto", {"--all_reduce_spec=nccl"}));
  EXPECT_EQ(nccl.status, 0) << nccl.err;
  EXPECT_THAT(nccl.err, HasSubstr("comm: NCCL 2.28.9 sums on the devices"));
  EXPECT_THAT(nccl.err, Not(HasSubstr("takes its place")));
  const Finished host = reduce(2, table_of("ring", {}));
  EXPECT_EQ(host.status, 0) << host.err;
  EXPECT_THAT(host.err, HasSubstr("comm: gradients travel to the host and are summed there"));
}

TEST_F(GpuReductions, AreRightForTheGradientsOfAModel) {
  for (const char* backend : {"--comm_backend=nccl", "--comm_backend=ring"}) {
    const Finished run =
        reduce(0, {backend, "--model=resnet20", "--data_name=cifar10", "--num_batches=2",
                   "--num_warmup_batches=1", "--iters_per_step=2", "--comm_first_bucket_kb=16",
                   "--comm_bucket_mb=1"});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, testing::ContainsRegex("\nAverage time per step: [0-9.]+\n$"));
    EXPECT_THAT(run.err, Not(HasSubstr("wrong")));
  }
}

// An injected error shows that the tests above compare the sums.
TEST_F(GpuReductions, ShowAWrongSumByTheHost) {
  const Finished run = reduce(0, table_of("ring", {"--comm_fault=rank=1,step=1,what=corrupt"}));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("WRONG"));
  EXPECT_THAT(run.out, Not(HasSubstr("errors 0\n")));
}

TEST_F(GpuReductionsOfProcesses, NameARankThatIsLost) {
  const Strings fault{"--comm_fault=rank=1,step=3,what=kill"};
  const Environment nccl_fault("CNN_EMULATED_NCCL_FAULT", "kill:1:6");
  for (const Finished& run :
       {reduce(2, table_of("nccl", {})), reduce(2, table_of("ring", fault))}) {
    std::map<int, int> codes = codes_of(run);
    EXPECT_EQ(codes[0], 75) << run.err;
    EXPECT_EQ(codes[1], 128 + SIGKILL) << run.err;
    EXPECT_THAT(run.err, HasSubstr("rank 1 is lost: "));
  }
}

TEST_F(GpuReductionsOfProcesses, RefuseFlagsOnceAndBlameNobody) {
  for (const Strings& flags : {Strings{"--comm_backend=mpi", "-b", "4K"},
                               Strings{"--comm_backend=nccl", "--comm_order=rank", "-b", "4K"}}) {
    const Finished run = reduce(2, flags);
    EXPECT_NE(run.status, 0);
    const std::size_t first = run.err.find("use nccl or ring"), second = run.err.find("NCCL adds");
    EXPECT_TRUE((first == std::string::npos) != (second == std::string::npos)) << run.err;
    EXPECT_EQ(first, run.err.rfind("use nccl or ring")) << run.err;
    EXPECT_EQ(second, run.err.rfind("NCCL adds")) << run.err;
    EXPECT_THAT(run.err, Not(HasSubstr("is lost")));
  }
}

TEST_F(GpuReductions, SayThatThereAreTooFewDevices) {
  const Finished run = reduce(0, table_of("nccl", {"--num_gpus=3"}));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("--num_gpus=3, but there are 2 CUDA devices"));
}

TEST_F(GpuReductions, SayThatABufferIsLargerThanTheMemoryOfADevice) {
  const Environment small("CNN_EMULATED_MB", "256");
  for (const char* backend : {"--comm_backend=nccl", "--comm_backend=ring"}) {
    const Finished run = reduce(0, {backend, "-b", "300M", "-n", "1", "-w", "0"});
    EXPECT_EQ(run.status, 3) << run.err;
    EXPECT_THAT(run.err, HasSubstr("out of memory: 314572800 bytes asked"));
  }
}

}  // namespace
}  // namespace cnn::tests
