#include <cmath>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/emulated_gpu/several_devices.h"
#include "tests/program/program.h"
#include "tests/program/ranks.h"
#include "tests/support/files.h"

// Tests runs of the unchanged program on several emulated GPUs. They exchange by emulated NCCL and
// through the host, in one process and in several; some lose a rank.

namespace cnn::tests {
namespace {

using testing::HasSubstr;
using Strings = std::vector<std::string>;

class GpuExchange : public SeveralDevices {};
class GpuExchangeOfProcesses : public SeveralDevicesOfProcesses {};

Strings tiny(const Strings& more) {
  return joined({"--data_name=cifar10", "--model=trivial", "--batch_size=4", "--num_batches=5",
                 "--num_warmup_batches=0", "--display_every=1", "--tf_random_seed=7",
                 "--init_learning_rate=0.01", "--nomeasure_ceilings", "--precision=fp32_strict",
                 "--comm_calibrate=off"},
                more);
}

// Adds flags for several buckets per step.
Strings in_buckets(const Strings& more) {
  return joined({"--comm_first_bucket_kb=16", "--comm_bucket_mb=1", "--comm_last_bucket_kb=16"},
                more);
}

// NOLINTNEXTLINE(bugprone-exception-escape): the exception comes from the library.
struct GpuRun {
  Finished finished;
  nlohmann::json result;
  std::vector<double> losses;  // without weight decay, one per step
};

// processes: 0 starts the program without mpirun.
GpuRun run_on(const std::string& device, int processes, Strings flags) {
  const TemporaryFolder folder;
  const std::string file = folder / "result.json";
  flags = joined(flags, {"--device=" + device, "--result_json=" + file});
  GpuRun run;
  run.finished = processes == 0 ? run_program(flags) : run_ranks(processes, flags);
  if (run.finished.status == 0) {
    run.result = nlohmann::json::parse(read_file(file));
    for (const auto& step : run.result.at("steps")) {
      run.losses.push_back(step.at("base_loss").get<double>());
    }
  }
  return run;
}

std::vector<double> losses_of(const std::string& device, int processes, const Strings& flags) {
  const GpuRun run = run_on(device, processes, flags);
  EXPECT_EQ(run.finished.status, 0) << run.finished.err << run.finished.out;
  return run.losses;
}

void expect_near(const std::vector<double>& gpu, const std::vector<double>& cpu, double tolerance) {
  ASSERT_FALSE(cpu.empty());
  ASSERT_EQ(gpu.size(), cpu.size());
  for (std::size_t step = 0; step < cpu.size(); ++step) {
    EXPECT_NEAR(gpu[step], cpu[step], tolerance * std::abs(cpu[step])) << "step " << step;
  }
}

// Exchanges by NCCL and through the host, with and without CUDA graphs, and expects the CPU's
// losses. A sum over two ranks has only one order, so both backends give the same bits.
void expect_losses_of_cpu(int processes, const Strings& flags, bool equal_bits) {
  const std::vector<double> cpu = losses_of("cpu", processes, flags);
  std::vector<std::vector<double>> all;
  for (const char* backend : {"--comm_backend=nccl", "--comm_backend=ring"}) {
    for (const char* graph : {"--use_cuda_graph", "--nouse_cuda_graph"}) {
      all.push_back(losses_of("gpu", processes, joined(flags, {backend, graph})));
      expect_near(all.back(), cpu, 1e-4);
      if (equal_bits) {
        EXPECT_EQ(all.back(), all.front()) << backend << " " << graph;
      }
    }
    EXPECT_EQ(all[all.size() - 1], all[all.size() - 2])
        << backend << ": captured and launched steps differ";
  }
}

TEST_F(GpuExchange, MatchesTheLossesOfTheCpuByNcclAndByTheHost) {
  expect_losses_of_cpu(0, in_buckets(tiny({"--num_gpus=2", "--variable_update=replicated"})), true);
}

// Trains ResNet-20 in 16 bits on two devices of one process, with several buckets per step.
void expect_equal_bits_of_resnet(const Strings& numbers) {
  const Strings flags =
      joined(in_buckets(tiny({"--num_gpus=2", "--variable_update=replicated"})),
             {"--model=resnet20", "--image_size=16", "--batch_size=2", "--num_batches=3"});
  const std::vector<double> cpu = losses_of("cpu", 0, flags);
  const Strings all = joined(flags, numbers);
  const std::vector<double> nccl = losses_of("gpu", 0, joined(all, {"--comm_backend=nccl"}));
  expect_near(nccl, cpu, 2e-2);
  for (const char* graph : {"--use_cuda_graph", "--nouse_cuda_graph"}) {
    EXPECT_EQ(losses_of("gpu", 0, joined(all, {"--comm_backend=ring", graph})), nccl) << graph;
  }
}

TEST_F(GpuExchange, HasTheBitsOfNcclByTheHostForResnetInFp16) {
  expect_equal_bits_of_resnet({"--precision=fp16", "--fp16_loss_scale=256"});
}

TEST_F(GpuExchange, HasTheBitsOfNcclByTheHostWithAnAutomaticScale) {
  expect_equal_bits_of_resnet(
      {"--precision=fp16", "--fp16_enable_auto_loss_scale", "--fp16_inc_loss_scale_every_n=1"});
}

TEST_F(GpuExchange, HasTheBitsOfNcclByTheHostForResnetInBf16) {
  expect_equal_bits_of_resnet({"--precision=bf16"});
}

TEST_F(GpuExchangeOfProcesses, HasTheLossesOfTheCpuByNcclAndByTheHost) {
  expect_losses_of_cpu(2, tiny({"--variable_update=horovod"}), true);
}

TEST_F(GpuExchangeOfProcesses, MatchesTheLossesOfTheCpuWithTwoDevicesEach) {
  set_devices(4);
  expect_losses_of_cpu(
      2, tiny({"--num_gpus=2", "--variable_update=distributed_replicated", "--num_batches=3"}),
      false);
}

// mpirun may kill the other ranks before they have printed their codes.
void expect_code(const Finished& run, int rank, int code) {
  std::map<int, int> codes = codes_of(run);
  ASSERT_EQ(codes.count(rank), 1U) << run.err;
  EXPECT_EQ(codes[rank], code) << run.err;
}

// Each rank makes three reductions before the first step. Only the first step is not captured, and
// each step has one reduction.
TEST_F(GpuExchangeOfProcesses, NamesARankThatIsLostInACapturedStepByNccl) {
  const Environment fault("CNN_EMULATED_NCCL_FAULT", "kill:1:6");
  const Finished run =
      run_on("gpu", 2, tiny({"--variable_update=horovod", "--num_batches=500"})).finished;
  expect_code(run, 0, 75);
  expect_code(run, 1, 128 + SIGKILL);
  EXPECT_THAT(run.err, HasSubstr("rank 1 is lost: "));
}

TEST_F(GpuExchangeOfProcesses, NamesARankThatIsLostInAStepThatIsNotCapturedByNccl) {
  const Environment fault("CNN_EMULATED_NCCL_FAULT", "kill:0:4");
  const Finished run =
      run_on("gpu", 2,
             tiny({"--variable_update=horovod", "--num_batches=500", "--nouse_cuda_graph"}))
          .finished;
  expect_code(run, 1, 75);
  expect_code(run, 0, 128 + SIGKILL);
  EXPECT_THAT(run.err, HasSubstr("rank 0 is lost: "));
}

TEST_F(GpuExchangeOfProcesses, NamesARankThatIsLostWhileNcclStarts) {
  const Environment fault("CNN_EMULATED_NCCL_FAULT", "kill:1:0");
  const Finished run = run_on("gpu", 2, tiny({"--variable_update=horovod"})).finished;
  expect_code(run, 0, 75);
  EXPECT_THAT(run.err, HasSubstr("rank 1 is lost: "));
}

TEST_F(GpuExchangeOfProcesses, NamesARankThatIsLostBetweenTwoBucketsByTheHost) {
  const Finished run =
      run_on(
          "gpu", 2,
          in_buckets(tiny({"--variable_update=horovod", "--num_batches=500", "--comm_backend=ring",
                           "--comm_fault=rank=1,step=3,after=0,what=kill"})))
          .finished;
  expect_code(run, 0, 75);
  expect_code(run, 1, 128 + SIGKILL);
  EXPECT_THAT(run.err, HasSubstr("rank 1 is lost: "));
  EXPECT_THAT(run.err, HasSubstr("in step 3, bucket 0"));
}

TEST_F(GpuExchangeOfProcesses, NamesTheProcessThatIsLostWithItsTwoDevices) {
  set_devices(4);
  const Environment fault("CNN_EMULATED_NCCL_FAULT", "kill:3:6");
  const Finished run =
      run_on(
          "gpu", 2,
          tiny({"--num_gpus=2", "--variable_update=distributed_replicated", "--num_batches=500"}))
          .finished;
  expect_code(run, 0, 75);
  expect_code(run, 1, 128 + SIGKILL);
  EXPECT_THAT(run.err, HasSubstr(" is lost: "));
}

TEST_F(GpuExchangeOfProcesses, EndsAllWhereOneHasNoDevice) {
  const Finished run = run_on("gpu", 3, tiny({"--variable_update=horovod"})).finished;
  expect_code(run, 2, 1);
  EXPECT_THAT(run.err, HasSubstr("rank 2: there is no CUDA device 2, only 2 from 0 on"));
  EXPECT_EQ(codes_of(run).size(), 3U) << run.err;
}

TEST_F(GpuExchangeOfProcesses, RefusesTwoRanksOnOneDevice) {
  set_devices(1);
  const Finished run =
      run_on("gpu", 2, tiny({"--variable_update=horovod", "--comm_backend=nccl"})).finished;
  EXPECT_THAT(run.err, HasSubstr("ranks 0 and 1 are both on device 0"));
  EXPECT_EQ(codes_of(run).size(), 2U) << run.err;
}

TEST_F(GpuExchange, TellsOfLostConnectionsThatNcclNotices) {
  const Environment fault("CNN_EMULATED_NCCL_FAULT", "error:1:5");
  const GpuRun run =
      run_on("gpu", 0, tiny({"--num_gpus=2", "--variable_update=replicated", "--num_batches=500"}));
  EXPECT_EQ(run.finished.status, 1);
  EXPECT_THAT(run.finished.err, HasSubstr("NCCL: "));
}

// Three reductions precede the first step, which has six: reduction 9 is the first captured one.
TEST_F(GpuExchange, TellsWhyNcclRefusesToLaunchInACapturedStep) {
  const Environment fault("CNN_EMULATED_NCCL_FAULT", "refuse:1:9");
  const GpuRun run = run_on("gpu", 0, tiny({"--num_gpus=2", "--variable_update=replicated"}));
  EXPECT_EQ(run.finished.status, 1);
  EXPECT_THAT(run.finished.err, HasSubstr("the launch was refused, as the test asks"));
}

// Flags with which one rank observes its steps. NCCL does not sum what one rank enqueues and
// another one replays.
Strings flags_that_observe(const std::string& folder) {
  return {"--hash_file=" + folder + "/hashes", "--comm_fault=rank=1,what=flip,step=99",
          "--summary_verbosity=2"};
}

TEST_F(GpuExchange, EnqueuesTheStepsOfAllRanksIfOneRankIsObserved) {
  const TemporaryFolder folder;
  const Strings flags = tiny({"--num_gpus=2", "--variable_update=replicated"});
  const std::vector<double> expected = losses_of("gpu", 0, flags);
  for (const std::string& flag : flags_that_observe(folder / "")) {
    EXPECT_EQ(losses_of("gpu", 0,
                        joined(flags, {flag, "--train_dir=" + (folder / flag.substr(2, 9)),
                                       "--save_summaries_steps=2"})),
              expected)
        << flag;
  }
}

TEST_F(GpuExchangeOfProcesses, EnqueuesTheStepsOfAllRanksIfOneRankIsObserved) {
  const TemporaryFolder folder;
  const Strings flags = tiny({"--variable_update=horovod"});
  EXPECT_EQ(losses_of("gpu", 2, joined(flags, {"--hash_file=" + (folder / "hashes")})),
            losses_of("gpu", 2, flags));
}

TEST_F(GpuExchangeOfProcesses, TimesTheSameStepsOnAllRanksWithALmsPlanFromAFile) {
  const TemporaryFolder folder;
  const Strings flags =
      joined(tiny({"--variable_update=horovod", "--num_batches=3", "--num_warmup_batches=3"}),
             {"--model=resnet20", "--image_size=16", "--batch_size=8", "--precision=fp16", "--lms",
              "--lms_size_threshold=16", "--lms_policy=tflms1"});
  const std::string plan = folder / "plan";
  for (const char* const limit : {"--lms_limit=36", "--lms_limit=35"}) {  // the step needs 35.7
    const std::vector<double> expected =
        losses_of("gpu", 2, joined(flags, {limit, "--lms_plan_out=" + plan}));
    EXPECT_EQ(losses_of("gpu", 2, joined(flags, {limit, "--lms_plan_file=" + plan})), expected)
        << limit;
  }
}

// One rank must not enqueue sums that another rank replays. Engines that wait for their stream
// cannot be captured.
TEST_F(GpuExchange, EndsWhereAStepWithSumsByNcclCannotBeCaptured) {
  const Environment waiting("CNN_EMULATED_WAITING_ENGINES", "1");
  const Strings flags =
      joined(tiny({"--num_gpus=2", "--variable_update=replicated", "--num_batches=3"}),
             {"--model=resnet20", "--image_size=16", "--batch_size=2", "--precision=fp16"});
  const GpuRun captured = run_on("gpu", 0, flags);
  EXPECT_EQ(captured.finished.status, 1);
  EXPECT_THAT(captured.finished.err, testing::AllOf(HasSubstr("the engine cannot wait"),
                                                    HasSubstr("try --nouse_cuda_graph")));
  EXPECT_EQ(run_on("gpu", 0, joined(flags, {"--nouse_cuda_graph"})).finished.status, 0);
  EXPECT_EQ(run_on("gpu", 0, joined(flags, {"--comm_backend=ring"})).finished.status, 0);
}

TEST_F(GpuExchange, IsOneClearLineWhereNcclHasNoMemoryForItsBuffers) {
  const Environment large("CNN_EMULATED_NCCL_BYTES", "3221225472");
  const GpuRun run = run_on(
      "gpu", 0, tiny({"--num_gpus=2", "--variable_update=replicated", "--comm_backend=nccl"}));
  EXPECT_EQ(run.finished.status, 1);
  EXPECT_THAT(run.finished.err, testing::AllOf(HasSubstr("out of memory"),
                                               HasSubstr("NCCL takes buffers on its device")));
}

TEST_F(GpuExchange, RefusesABatchThatDoesNotFitBesideTheBuffersOfNccl) {
  const Environment large("CNN_EMULATED_NCCL_BYTES", "600000000");
  const GpuRun run =
      run_on("gpu", 0,
             joined(tiny({"--num_gpus=2", "--variable_update=replicated", "--comm_backend=nccl"}),
                    {"--batch_size=20000"}));
  EXPECT_EQ(run.finished.status, 3) << run.finished.err;
  EXPECT_THAT(run.finished.err, testing::AllOf(HasSubstr("1144 MiB for NCCL"),
                                               HasSubstr("the largest --batch_size that fits")));
}

TEST_F(GpuExchange, DelaysChangeNoBit) {
  const Strings flags = tiny({"--num_gpus=2", "--variable_update=replicated"});
  const std::vector<double> expected = losses_of("gpu", 0, flags);
  const Environment fault("CNN_EMULATED_NCCL_FAULT", "delay:1:5:200");
  EXPECT_EQ(losses_of("gpu", 0, flags), expected);
}

// A step of this network has fewer than 100 kernels, so kernel 60 fails in the middle of a step.
TEST_F(GpuExchange, NamesTheOperationWhoseKernelFails) {
  const Environment fault("CNN_EMULATED_KERNEL_FAULT", "0:60");
  const GpuRun run =
      run_on("gpu", 0, tiny({"--sync_each_kernel", "--num_batches=500", "--nouse_cuda_graph"}));
  EXPECT_EQ(run.finished.status, 1);
  EXPECT_THAT(run.finished.err,
              testing::ContainsRegex("[a-z_]+(#[0-9]+)?: cudaErrorLaunchFailure: unspecified"));
}

TEST_F(GpuExchange, SaysHowToNameTheOperationWhoseKernelFailsInAGraph) {
  const Environment fault("CNN_EMULATED_KERNEL_FAULT", "0:200");
  const GpuRun run = run_on("gpu", 0, tiny({"--num_batches=500"}));
  EXPECT_EQ(run.finished.status, 1);
  EXPECT_THAT(run.finished.err, testing::AllOf(HasSubstr("cudaErrorLaunchFailure"),
                                               HasSubstr("only with --sync_each_kernel")));
}

// Returns a run in which a kernel of device 1 fails and the kernels of device 0 wait for it.
GpuRun run_with_a_failed_peer(const std::string& backend) {
  const Environment fault("CNN_EMULATED_KERNEL_FAULT", "1:100");
  return run_on("gpu", 0,
                in_buckets(tiny({"--num_gpus=2", "--variable_update=replicated",
                                 "--num_batches=500", "--comm_backend=" + backend})));
}

TEST_F(GpuExchange, EndsWhenAKernelFailsThatTheOtherDeviceWaitsFor) {
  for (const char* backend : {"ring", "nccl"}) {
    const GpuRun run = run_with_a_failed_peer(backend);
    EXPECT_EQ(run.finished.status, 1) << backend;
    EXPECT_THAT(run.finished.err, HasSubstr("cudaErrorLaunchFailure")) << backend;
  }
}

// The emulation reports 400 + 50 d watts for device d.
TEST_F(GpuExchange, TellsTelemetryOfTheDevicesThatItUses) {
  const GpuRun run = run_on("gpu", 0, tiny({"--num_gpus=2", "--variable_update=replicated"}));
  ASSERT_EQ(run.finished.status, 0) << run.finished.err;
  EXPECT_THAT(run.finished.err, HasSubstr("telemetry: 400 W mean, 1980 MHz (1980 max), 50 C"));
  const nlohmann::json& telemetry = run.result.at("telemetry");
  EXPECT_EQ(telemetry.at("source"), "NVML of driver 580.00 (emulated)");
}

}  // namespace
}  // namespace cnn::tests
