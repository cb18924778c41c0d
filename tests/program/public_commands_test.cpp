// Tests command lines of public scripts that call tf_cnn_benchmarks. Each must run, or end with one
// line that names the reason and the remedy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/program/rank_training.h"

namespace cnn::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// Appended flags make a command fast: a small network, few steps, and a simulated GPU if it wants
// one.
const std::string one_step_of_lenet =
    " --model=lenet --batch_size=1 --num_batches=1 --num_warmup_batches=0 --nomeasure_ceilings";
const std::string simulated_run = " --model=lenet --batch_size=8 --simulate=h200";

struct PublicCommand {
  std::string user;
  std::string line;
  std::string appended;
};

const std::vector<PublicCommand> commands_that_run{
    {"tf_cnn_benchmarks, README",
     "--num_gpus=1 --batch_size=32 --model=resnet50 --variable_update=parameter_server",
     one_step_of_lenet},
    {"TensorFlow, performance guide",
     "--local_parameter_device=cpu --num_gpus=2 --batch_size=32 --model=vgg16 --data_format=NCHW "
     "--variable_update=parameter_server --nodistortions",
     one_step_of_lenet},
    {"Horovod, benchmarks", "--model resnet101 --batch_size 64 --variable_update horovod",
     one_step_of_lenet},
    {"Kubeflow, MPIJob", "--model=resnet101 --batch_size=64 --variable_update=horovod",
     one_step_of_lenet},
    {"Kubeflow, MPIJob without GPUs",
     "--model=resnet101 --batch_size=32 --device=cpu --data_format=NHWC "
     "--variable_update=horovod",
     one_step_of_lenet},
    {"Kubeflow, TFJob",
     "--batch_size=32 --model=resnet50 --variable_update=parameter_server --flush_stdout=true "
     "--num_gpus=1 --local_parameter_device=cpu --device=cpu --data_format=NHWC",
     one_step_of_lenet},
    {"PerfKitBenchmarker",
     "--local_parameter_device=cpu --batch_size=64 --model=inception3 --data_name=imagenet "
     "--variable_update=replicated --distortions=True --device=gpu --data_format=NCHW "
     "--forward_only=False --use_fp16=False --num_gpus=1",
     simulated_run},
    {"PerfKitBenchmarker, 16 bits",
     "--local_parameter_device=gpu --batch_size=256 --model=resnet50 --data_name=imagenet "
     "--variable_update=replicated --distortions=False --device=gpu --data_format=NCHW "
     "--forward_only=True --use_fp16=True --num_gpus=1",
     simulated_run},
    {"ReFrame", "--model inception3 --batch_size 64 --variable_update horovod --log_dir ./logs",
     one_step_of_lenet},
    {"Amazon SageMaker",
     "--num_batches=500 --model vgg16 --variable_update horovod --horovod_device gpu --use_fp16 "
     "--summary_verbosity 1 --save_summaries_steps 10 --batch_size 32",
     simulated_run},
    {"Alibaba, arena",
     "--model resnet101 --batch_size 64 --variable_update horovod --summary_verbosity=3 "
     "--save_summaries_steps=10",
     one_step_of_lenet},
    {"Huawei, ModelArts",
     "--model=resnet50 --data_name=imagenet --num_batches=1000 --eval=False --forward_only=False "
     "--print_training_accuracy=True --num_gpus=1 --num_warmup_batches=20 --batch_size=64 "
     "--momentum=0.9 --weight_decay=0.0001 --staged_vars=False --variable_update=horovod "
     "--optimizer=momentum --use_datasets=True --distortions=False --fuse_decode_and_crop=True "
     "--resize_method=bilinear --display_every=50 --data_format=NCHW --batchnorm_persistent=True "
     "--use_tf_layers=True --winograd_nonfused=True",
     one_step_of_lenet},
    {"Tencent, TI",
     "--num_batches=100 --num_warmup_batches=5 --summary_verbosity=1 "
     "--local_parameter_device=gpu --cross_replica_sync=True --batch_size=64 --device=gpu "
     "--variable_update=distributed_all_reduce --all_reduce_spec=xring --model=resnet101",
     simulated_run},
    {"Intel, inference",
     "--device=cpu --mkl=True --data_format=NCHW "
     "--kmp_affinity=granularity=fine,noverbose,compact,1,0 --kmp_blocktime=1 --kmp_settings=1 "
     "--num_warmup_batches=20 --batch_size=64 --num_batches=100 --model=inception3 "
     "--num_intra_threads=2 --num_inter_threads=2 --forward_only=True",
     one_step_of_lenet},
    {"Intel, training",
     "--mkl=True --forward_only=False --num_batches=100 --kmp_blocktime=0 "
     "--num_warmup_batches=0 --num_inter_threads=2 --distortions=False --optimizer=sgd "
     "--batch_size=128 --num_intra_threads=2 --data_format=NCHW --num_omp_threads=2 "
     "--model=resnet50 --device=cpu",
     one_step_of_lenet},
    {"Intel, Horovod on CPUs",
     "--device=cpu --mkl=TRUE --variable_update=horovod --horovod_device=cpu "
     "--local_parameter_device=cpu --optimizer=momentum --display_every=10 --kmp_blocktime=1 "
     "--data_name=imagenet --batch_size=128",
     one_step_of_lenet},
    {"CPUs by NUMA nodes", "--device=cpu --use_numa_affinity=True --model=resnet50",
     one_step_of_lenet},
    {"CPUs, two devices by NUMA nodes",
     "--device=cpu --use_numa_affinity --num_gpus=2 --variable_update=replicated",
     one_step_of_lenet},
    {"Lambda",
     "--model=resnet152 --num_gpus=2 --batch_size=64 --variable_update=replicated "
     "--all_reduce_spec=nccl --local_parameter_device=gpu --nodistortions --num_batches=100 "
     "--data_name=imagenet --gradient_repacking=2",
     one_step_of_lenet},
    {"NVIDIA DGX-1",
     "--model=vgg16 --num_gpus=2 --variable_update=replicated --hierarchical_copy=True "
     "--network_topology=dgx1 --gradient_repacking=8",
     one_step_of_lenet},
    {"a list of modes, parameter server on the CPU",
     "--model alexnet --num_gpus 2 --local_parameter_device cpu", one_step_of_lenet},
    {"a list of modes, without NCCL",
     "--model alexnet --num_gpus 2 --variable_update replicated --use_nccl=False",
     one_step_of_lenet},
    {"a list of modes, independent", "--model alexnet --num_gpus 2 --variable_update independent",
     one_step_of_lenet},
    {"specifications of reductions",
     "--num_gpus=2 --variable_update=replicated --all_reduce_spec=pscpu:2k:pscpu#2:64k:xring "
     "--agg_small_grads_max_bytes=32768 --agg_small_grads_max_group=8",
     one_step_of_lenet},
    {"specifications of reductions, two levels",
     "--num_gpus=2 --variable_update=replicated --all_reduce_spec=nccl/xring", one_step_of_lenet},
    {"specifications of reductions, xring",
     "--num_gpus=2 --variable_update=distributed_all_reduce --all_reduce_spec=xring",
     one_step_of_lenet},
    {"specifications of reductions, collective",
     "--num_gpus=2 --variable_update=collective_all_reduce --all_reduce_spec=collective#2",
     one_step_of_lenet},
    {"an order of GPUs", "--num_gpus=2 --gpu_indices=1,0 --variable_update=replicated",
     one_step_of_lenet},
    {"an order of GPUs, simulated", "--gpu_indices=0 --device=gpu --model=resnet50", simulated_run},
    {"XLA", "--xla --model=resnet50", one_step_of_lenet},
    {"XLA, 16 bits", "--xla_compile=True --use_fp16 --model=resnet50 --batch_size=128",
     simulated_run},
    {"frozen inference",
     "--model=resnet50 --forward_only --freeze_when_forward_only --batch_size=16 "
     "--data_format=NHWC --num_intra_threads=1",
     one_step_of_lenet},
    {"IBM, large model support",
     "--model=resnet50 --batch_size=256 --lms=True --lms_n_tensors=-1 --lms_lb=1",
     one_step_of_lenet},
    {"IBM, large model support 2",
     "--model=resnet50 --lms --lms_swapout_threshold=1 --lms_swapin_ahead=1 "
     "--lms_swapin_groupby=0 --lms_sync_mode=0",
     one_step_of_lenet},
    {"MLPerf", "--model=resnet50_v1.5 --ml_perf --ml_perf_compliance_logging", one_step_of_lenet},
    {"a run that spells defaults out",
     "--job_name= --ps_hosts= --worker_hosts= --task_index=0 --trt_mode= --debugger= "
     "--use_unified_memory=False --fp16_vars=False --staged_vars=False --sync_on_finish=False "
     "--use_numa_affinity=False --use_chrome_trace_format=True --server_protocol=grpc "
     "--cross_replica_sync=True --kmp_blocktime=0",
     one_step_of_lenet},
    {"an optimizer's rates",
     "--model=inception3 --optimizer=rmsprop --rmsprop_epsilon=1.0 --init_learning_rate=0.045 "
     "--num_epochs_per_decay=2 --learning_rate_decay_factor=0.94 --gradient_clip=2",
     one_step_of_lenet},
    {"Azure, HB series",
     "--batch_size=64 --num_warmup_batches=10 --num_batches=50 --model=resnet50 "
     "--num_intra_threads=1000 --num_inter_threads=2 --data_name=imagenet --kmp_blocktime=1 "
     "--kmp_affinity=granularity=fine,noverbose,compact,1,0 --display_every=10 "
     "--data_format=NCHW --optimizer=momentum --forward_only=False --device=cpu --mkl=TRUE "
     "--variable_update=horovod --horovod_device=cpu --local_parameter_device=cpu",
     one_step_of_lenet},
    {"Habana, on CPUs",
     "--model=resnet50 --batch_size=64 --data_format NHWC --display_every=1 --mkl=true "
     "--datasets_use_prefetch=False --kmp_blocktime=1 "
     "--kmp_affinity=granularity=fine,compact,1,0 --data_name=imagenet --num_intra_threads 32 "
     "--num_inter_threads 32 --horovod_device cpu --variable_update=horovod --num_batches=1 "
     "--num_warmup_batches=0 --distortions=False --print_training_accuracy=1 "
     "--summary_verbosity=2 --save_summaries_steps=1 --batchnorm_persistent=False "
     "--optimizer=momentum",
     one_step_of_lenet},
    {"Amazon EKS, shared GPUs",
     "--data_name=imagenet --model=resnet50 --num_batches=100 --batch_size=4 --num_gpus=1 "
     "--gpu_memory_frac_for_testing=0.2",
     one_step_of_lenet},
    {"a script whose variables are empty",
     "--data_dir= --train_dir= --eval_dir= --trace_file= --all_reduce_spec= --gpu_indices= "
     "--piecewise_learning_rate_schedule= --eval_during_training_every_n_epochs=0 "
     "--save_model_steps=0 --eval_interval_secs=0 --stop_at_top_1_accuracy=0 --num_epochs=0",
     one_step_of_lenet},
    {"TensorFlow's machinery",
     "--allow_growth=True --force_gpu_compatible=True --per_gpu_thread_count=2 "
     "--gpu_thread_mode=gpu_private --sync_on_finish=True --single_l2_loss_op=True "
     "--compute_lr_on_cpu --enable_optimizations=False --autotune_threshold=1",
     one_step_of_lenet}};

// Measuring the links of two devices would take longer than the run.
std::vector<std::string> words_to_run(const PublicCommand& command) {
  std::vector<std::string> words = words_of(command.line + command.appended);
  if (command.line.find("num_gpus=2") != std::string::npos ||
      command.line.find("num_gpus 2") != std::string::npos) {
    words.emplace_back("--comm_calibrate=off");
  }
  return words;
}

TEST(PublicCommands, RunAsTheyAre) {
  for (const PublicCommand& command : commands_that_run) {
    const Finished run = run_program(words_to_run(command));
    EXPECT_EQ(run.status, 0) << command.user << ": " << command.line << '\n' << run.err;
    if (command.appended == simulated_run) {
      EXPECT_THAT(run.err, HasSubstr("simulate: predicted step ")) << command.user;
    } else {
      EXPECT_THAT(run.out, HasSubstr("\n1\timages/sec: ")) << command.user;
      EXPECT_THAT(run.out, HasSubstr("\ntotal images/sec: ")) << command.user;
    }
  }
}

TEST(PublicCommands, WriteSummariesAndEvaluateThem) {
  const TemporaryFolder folder;
  const std::string train_dir = "--train_dir=" + (folder / "t");
  const std::string eval_dir = " --eval_dir " + (folder / "e");
  const Finished training =
      run_program(words_of("--device=cpu --summary_verbosity 1 --save_summaries_steps 1 " +
                           train_dir + eval_dir + one_step_of_lenet));
  ASSERT_EQ(training.status, 0) << training.err;
  const Finished evaluation =
      run_program(words_of("--device=cpu --eval " + train_dir + eval_dir + one_step_of_lenet));
  EXPECT_EQ(evaluation.status, 0) << evaluation.err;
  EXPECT_THAT(evaluation.out, HasSubstr("Accuracy @ 1 = "));
  for (const char* const name : {"t", "e"}) {
    bool has_events = false;
    for (const auto& entry : std::filesystem::directory_iterator(folder / name)) {
      has_events =
          has_events || entry.path().filename().string().starts_with("events.out.tfevents");
    }
    EXPECT_TRUE(has_events) << name;
  }
}

TEST(PublicCommands, ShowTheNumaBindingInTheHeader) {
  const Finished run =
      run_program(words_of("--device=cpu --use_numa_affinity" + one_step_of_lenet));
  EXPECT_THAT(run.out, HasSubstr("\nNUMA bind:   True\n"));
}

struct RefusedCommand {
  std::string line;
  std::string reason;  // the beginning of the line on stderr
  std::string advice;
};

TEST(PublicCommands, AreElseRefusedByOneLineWithTheReasonAndTheAlternative) {
  const std::vector<RefusedCommand> commands{
      {"--forward_only=true --num_gpus=1 --batch_size=2048 --model=resnet50 --use_fp16=true "
       "--fp16_vars=True --trt_mode=INT8 --freeze_when_forward_only=True",
       "--fp16_vars=True is not supported: weights stay in float32", "leave it out"},
      {"--model=resnet50 --forward_only --freeze_when_forward_only --trt_mode=FP16",
       "--trt_mode=FP16 is not supported: there is no TensorRT", "--use_fp16"},
      {"--model=resnet152 --use_unified_memory=True --gpu_memory_frac_for_testing=2",
       "--use_unified_memory=True is not supported: pages", "--lms"},
      {"--model=resnet50 --use_fp16 --batch_size=256 --device=cpu", "--use_fp16 needs a GPU",
       "--precision="},
      {"--model=resnet32 --data_name=cifar10 --optimizer=momentum --variable_update=kungfu",
       "FATAL Flags parsing error: flag --variable_update=kungfu", "--variable_update=horovod"},
      {"--model=resnet50 --parameter_server=cpu --num_preprocess_threads=5 --weak_scaling",
       "FATAL Flags parsing error: --parameter_server", "--local_parameter_device"},
      {"--model=resnet50 --checkpoint_directory=/cache/checkpoints",
       "FATAL Flags parsing error: --checkpoint_directory", "--train_dir"},
      {"--data_name=imagenette --data_dir=/imagenette --model=alexnet",
       "FATAL Flags parsing error: flag --data_name=imagenette", "--data_name=imagenet"},
      {"--model=resnet50 --device=cpu --datasets_num_private_threads=100000",
       "FATAL Flags parsing error: flag --datasets_num_private_threads=100000",
       "must be 1024 or less"},
      {"--model=resnet32 --data_name=cifar10 --variable_update=kungfu "
       "--kungfu_strategy=BINARY_TREE_STAR",
       "FATAL Flags parsing error: --kungfu_strategy", "--all_reduce_spec"},
      {"--mkl=True --model=resnet50 --device numa --num_gpus 2 --gpu_indices 0,1",
       "FATAL Flags parsing error: flag --device=numa", "--num_gpus=N"},
      {"--device cpu --data_format NCHW --cpu skl --data_name synthetic --model googlenet",
       "FATAL Flags parsing error: --cpu is a flag of other releases", "--device=cpu"},
      {"--device cpu --data_name synthetic --model googlenet --num_batches 100",
       "FATAL Flags parsing error: flag --data_name=synthetic", "leave --data_name out"},
      {"--model alexnet --num_gpus 2 --variable_update replicated --use_nccl False",
       "Received unknown positional arguments: ['False']", "--use_nccl=False"},
      {"--local_parameter_device=gpu --num_gpus=8 --batch_size=64 --model=resnet50 "
       "--variable_update=distributed_replicated --job_name=worker --ps_hosts=127.0.0.1:5000 "
       "--worker_hosts=127.0.0.1:5001,127.0.0.2:5001 --task_index=1",
       "--job_name=worker is not supported: all ranks, one for each worker",
       ": mpirun -np 2 -H 127.0.0.1:1,127.0.0.2:1 " CNN_PROGRAM
       " --local_parameter_device=gpu --num_gpus=8 --batch_size=64 --model=resnet50 "
       "--variable_update=distributed_replicated\n"},
      {"--device=gpu --variable_update=parameter_server --job_name=ps --task_index=0 "
       "--ps_hosts=ps-0.kubeflow.svc:2222 --worker_hosts=worker-0.kubeflow.svc:2222",
       "--job_name=ps is not supported", "mpirun -np 1 -H worker-0.kubeflow.svc:1 "},
      {"--num_gpus=4 --variable_update=horovod --model=resnet50",
       "--variable_update=horovod and ddl have one device in each process", "mpirun -np N"},
      {"--variable_update=ddl --model=resnet50", "Could not initialize DDL.", "using mpirun"},
      {"--device=cpu --variable_update=distributed_all_reduce --all_reduce_spec=nccl/xring "
       "--model=resnet56 --data_name=cifar10 --cross_replica_sync=true",
       "--variable_update=distributed_all_reduce is for several processes", "mpirun -np N"},
      {"--num_gpus=2 --device=cpu --variable_update=replicated --all_reduce_spec=psgpu#4",
       "--all_reduce_spec=psgpu#4: no algorithm", "--all_reduce_spec=psgpu#2"},
      {"--model=resnet50 --data_dir=hdfs://host:4545/imageNet/tfrecord --data_name=imagenet",
       "--data_dir=hdfs://host:4545/imageNet/tfrecord: files", "mount or copy"},
      {"--model=resnet50 --train_dir=gs://bucket/run --save_model_steps=10",
       "--train_dir=gs://bucket/run: files", "mount or copy"},
      {"--batch_size=512 --model=resnet50 --nodistortions --data_dir=/no/such/folder "
       "--data_name=imagenet --device=cpu",
       "--data_dir=/no/such/folder: there is no such folder", "leave the flag out"},
      {"--model=ssd300 --data_name=coco --data_dir=/coco", "--data_name=coco: this program trains",
       "use imagenet"},
      {"--model=ncf --batch_size=65536 --device=cpu", "--model=ncf: this program trains", "choose"},
      {"--model=resnet50 --staged_vars --variable_update=parameter_server",
       "--staged_vars=True is not supported", "leave it out"},
      {"--model=resnet50 --cross_replica_sync=false", "--cross_replica_sync=False is not supported",
       "leave it out"},
      {"--model=resnet50 --debugger=cli", "--debugger=cli is not supported", "--trace_file"}};
  for (const RefusedCommand& command : commands) {
    const Finished run = run_program(words_of(command.line));
    EXPECT_EQ(run.status, 1) << command.line;
    EXPECT_THAT(run.out.substr(0, run.out.find("Program:")), IsEmpty()) << command.line;
    ASSERT_THAT(run.err, HasSubstr(command.reason)) << command.line;
    const std::string refusal = run.err.substr(run.err.rfind('\n', run.err.size() - 2) + 1);
    EXPECT_THAT(refusal, StartsWith(command.reason)) << run.err;
    EXPECT_THAT(refusal, HasSubstr(command.advice)) << command.line;
  }
}

class PublicCommandsOfRanks : public SeveralProcesses {};

TEST_F(PublicCommandsOfRanks, RunUnderMpirun) {
  const std::string unmeasured = " --comm_calibrate=off" + one_step_of_lenet;
  for (const std::string line : {"--model=resnet101 --batch_size=64 --variable_update=horovod",
                                 "--variable_update=ddl --num_gpus=1 --model=resnet50"}) {
    const Finished run = run_ranks(2, words_of(line + unmeasured));
    EXPECT_EQ(run.status, 0) << line << run.err;
    EXPECT_EQ(lines_with(run, "1\timages/sec: "), 2U) << run.out;
  }
}

// The command that a refused worker prints must start both ranks.
TEST_F(PublicCommandsOfRanks, StartByTheLineThatAWorkerPrints) {
  const Finished refused = run_program(
      words_of("--job_name=worker --worker_hosts=localhost:1,localhost:2 --task_index=0 "
               "--ps_hosts=localhost:3 --device=cpu --comm_calibrate=off" +
               one_step_of_lenet));
  const std::string mark = ": mpirun -np ";
  ASSERT_NE(refused.err.find(mark), std::string::npos) << refused.err;
  const std::string line = refused.err.substr(refused.err.find(mark) + 2);
  const Environment as_root("OMPI_ALLOW_RUN_AS_ROOT", "1");
  const Environment really("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  const Environment unbound("OMPI_MCA_hwloc_base_binding_policy", "none");
  const Environment yielding("OMPI_MCA_mpi_yield_when_idle", "1");
  const Finished run = run_and(
      {"/bin/sh", "-c", line}, [](const Finished&) { return false; }, [] {});
  EXPECT_EQ(run.status, 0) << line << run.err;
  EXPECT_EQ(lines_with(run, "1\timages/sec: "), 2U) << run.out;
  EXPECT_EQ(lines_with(run, "Variables:   distributed_replicated"), 1U) << run.out;
}

}  // namespace
}  // namespace cnn::tests
