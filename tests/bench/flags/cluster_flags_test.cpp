#include "bench/flags/cluster_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using ClusterWords = std::vector<std::string>;

std::string cluster_refusal(const ClusterWords& words, bool launched = false) {
  try {
    parse_flags(words, {.launched = launched, .program = "/opt/bin/cnn_benchmarks"});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Returns the mpirun line that the refusal prints for these workers.
std::string line_for(const std::string& worker_hosts, const ClusterWords& more = {}) {
  ClusterWords words{"--job_name=worker", "--worker_hosts=" + worker_hosts, "--task_index=0"};
  words.insert(words.end(), more.begin(), more.end());
  const std::string text = cluster_refusal(words);
  return text.substr(std::min(text.find(": mpirun -np"), text.size() - 2) + 2);
}

TEST(ClusterFlags, BecomeTheMpirunLineOfTheSameRanks) {
  EXPECT_EQ(cluster_refusal({"--local_parameter_device=gpu", "--num_gpus=8", "--batch_size", "64",
                             "--model=resnet50", "--variable_update=distributed_replicated",
                             "--job_name=worker", "--ps_hosts=127.0.0.1:5000",
                             "--worker_hosts=127.0.0.1:5001,127.0.0.2:5001", "--task_index", "1",
                             "--nodistortions"}),
            "--job_name=worker is not supported: all ranks, one for each worker, are started "
            "together by mpirun, which tells them who they are; --ps_hosts are no ranks, an "
            "allreduce among the workers "
            "takes their place; start this once, in place of all of them: mpirun -np 2 -H "
            "127.0.0.1:1,127.0.0.2:1 /opt/bin/cnn_benchmarks --local_parameter_device=gpu "
            "--num_gpus=8 --batch_size=64 --model=resnet50 "
            "--variable_update=distributed_replicated --distortions=false");
}

TEST(ClusterFlags, CountTheWorkersOfEachHost) {
  const std::string rest = " /opt/bin/cnn_benchmarks --variable_update=distributed_replicated";
  EXPECT_EQ(line_for("a:1,b:1"), "mpirun -np 2 -H a:1,b:1" + rest);
  EXPECT_EQ(line_for("a:1,b:1,a:2,a:3"), "mpirun -np 4 -H a:3,b:1" + rest);
  EXPECT_EQ(line_for("a,b-2.example.org"), "mpirun -np 2 -H a:1,b-2.example.org:1" + rest);
  EXPECT_EQ(line_for("a:2222, b:2222,"), "mpirun -np 2 -H a:1,b:1" + rest);
  EXPECT_EQ(line_for("[::1]:2222,::1"), "mpirun -np 2 -H localhost:2" + rest);
}

TEST(ClusterFlags, ReplaceParameterServersByAnAllreduce) {
  EXPECT_THAT(line_for("a:1", {"--variable_update=parameter_server", "--model=vgg16"}),
              EndsWith(" --variable_update=distributed_replicated --model=vgg16"));
  EXPECT_THAT(line_for("a:1", {"--variable_update=distributed_all_reduce", "--controller_host=c:1",
                               "--all_reduce_spec=pscpu:2k:xring"}),
              EndsWith("cnn_benchmarks --variable_update=distributed_all_reduce "
                       "--all_reduce_spec=pscpu:2k:xring"));
  EXPECT_THAT(cluster_refusal({"--job_name=ps", "--ps_hosts=p:1", "--worker_hosts=a:1"}),
              AllOf(HasSubstr("an allreduce among the workers takes their place"),
                    HasSubstr("no process with --job_name=ps is needed"),
                    HasSubstr(": mpirun -np 1 -H a:1 ")));
  EXPECT_THAT(cluster_refusal({"--job_name=controller", "--worker_hosts=a:1",
                               "--variable_update=distributed_all_reduce"}),
              AllOf(HasSubstr("no process with --job_name=controller is needed"),
                    Not(HasSubstr("--ps_hosts"))));
}

TEST(ClusterFlags, QuoteWordsThatAShellWouldTakeApart) {
  EXPECT_THAT(line_for("a:1", {"--train_dir=/tmp/it's a run", "--benchmark_test_id=x;y"}),
              EndsWith(" '--train_dir=/tmp/it'\\''s a run' '--benchmark_test_id=x;y'"));
}

TEST(ClusterFlags, NameWhatIsWrongWithThem) {
  EXPECT_THAT(cluster_refusal({"--job_name=worker", "--worker_hosts=a:1,b:1", "--task_index=2"}),
              StartsWith("--task_index=2: --worker_hosts=a:1,b:1 names 2, so that it is less"));
  EXPECT_THAT(cluster_refusal(
                  {"--job_name=ps", "--ps_hosts=p:1", "--worker_hosts=a:1,b:1", "--task_index=1"}),
              StartsWith("--task_index=1: --ps_hosts=p:1 names 1"));
  EXPECT_THAT(cluster_refusal({"--job_name=worker", "--worker_hosts=[fd00::2]:22"}),
              HasSubstr("mpirun takes no IPv6 addresses; give fd00::2 a name"));
  for (const char* const entry : {"a:x", "a:", "a;b:1", "[::1]x"}) {
    EXPECT_THAT(cluster_refusal({"--job_name=worker", std::string("--worker_hosts=") + entry}),
                HasSubstr(std::string("'") + entry + "' is no HOST or HOST:PORT"));
  }
  EXPECT_THAT(cluster_refusal({"--job_name=chief", "--worker_hosts=a:1"}),
              HasSubstr("value should be one of <ps|worker|controller|>"));
}

TEST(ClusterFlags, AreRefusedOneByOneToo) {
  for (const char* const flag : {"--job_name=worker", "--ps_hosts=a:1", "--worker_hosts=a:1",
                                 "--controller_host=a:1", "--task_index=1"}) {
    EXPECT_THAT(cluster_refusal({flag}),
                AllOf(StartsWith(std::string(flag) + " is not supported: all ranks, one for each"),
                      HasSubstr(": mpirun -np ")))
        << flag;
  }
  EXPECT_THAT(cluster_refusal({"--job_name=worker"}), HasSubstr("-np 2 -H HOST1:1,HOST2:1 "));
  EXPECT_EQ(cluster_refusal({"--job_name=", "--task_index=0", "--worker_hosts="}), "no error");
}

TEST(ClusterFlags, AreLeftOutUnderMpirun) {
  EXPECT_THAT(cluster_refusal({"--job_name=worker", "--worker_hosts=a:1"}, /*launched=*/true),
              AllOf(HasSubstr("mpirun has started this rank"), HasSubstr("leave out --job_name, "),
                    Not(HasSubstr("mpirun -np"))));
}

TEST(ClusterFlags, LeaveTheFirstWordToFlagsThatAreRefusedInAnyCase) {
  EXPECT_THAT(cluster_refusal({"--job_name=worker", "--worker_hosts=a:1", "--staged_vars"}),
              StartsWith("--staged_vars=True is not supported"));
}

}  // namespace
}  // namespace cnn::bench
