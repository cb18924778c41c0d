#include "bench/flags/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

std::string none() { return "no CUDA device: none"; }

constexpr RunEnvironment plain_cpu{};
constexpr RunEnvironment new_cpu{.bf16 = true};
constexpr RunEnvironment gpu{.gpu_backend = true};
constexpr RunEnvironment planner{.gpu_backend = true, .missing_gpu = none};

CommandLine parse(const std::vector<std::string>& words,
                  const RunEnvironment& environment = plain_cpu) {
  return parse_flags(words, environment);
}

std::vector<std::string_view> given(const CommandLine& line) {
  std::vector<std::string_view> names;
  for (const Setting& setting : line.settings) {
    if (setting.given) {
      names.push_back(setting.flag->name);
    }
  }
  return names;
}

std::string refusal(const std::vector<std::string>& words,
                    const RunEnvironment& environment = plain_cpu) {
  try {
    parse_flags(words, environment);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Flags, AreDefaultsWithoutACommandLine) {
  const CommandLine line = parse({});
  EXPECT_EQ(line.config.model.name, "trivial");
  EXPECT_EQ(line.config.device, DeviceKind::cpu);
  EXPECT_EQ(line.config.data.set->name, "imagenet");
  EXPECT_EQ(line.config.precision.type, Precision::fp32);
  EXPECT_THAT(line.notices, IsEmpty());
  EXPECT_THAT(given(line), IsEmpty());
}

TEST(Flags, FillTheConfigurationAndTheLastOneWins) {
  const CommandLine line =
      parse({"--model=resnet50", "--batch_size=2", "--eval=0", "--batch_size", "8", "--nodropout",
             "--train_dir=/tmp/a b", "--kmp_settings=1", "--resize_method=bilinear"});
  EXPECT_EQ(line.config.model.name, "resnet50");
  EXPECT_EQ(line.config.size.batch, 8);
  EXPECT_FALSE(line.config.model.dropout);
  EXPECT_EQ(line.config.checkpoint.train_dir, "/tmp/a b");
  EXPECT_THAT(given(line), UnorderedElementsAre("model", "batch_size", "eval", "dropout",
                                                "train_dir", "kmp_settings", "resize_method"));
  EXPECT_THAT(line.notices, IsEmpty());
}

TEST(Flags, TakeAnEmptyValue) {
  EXPECT_FALSE(parse({"--data_dir="}).config.data.dir.has_value());
  EXPECT_EQ(parse({"--trace_file="}).config.report.trace_file, "");
}

TEST(Flags, RefuseWordsThatAreNoFlags) {
  EXPECT_EQ(refusal({"--eval", "false", "x"}),
            "Received unknown positional arguments: ['false', 'x']; a switch takes its value by an "
            "equals sign: --eval=false");
  EXPECT_EQ(refusal({"train"}), "Received unknown positional arguments: ['train']");
  EXPECT_EQ(refusal({"--use_nccl", "False"}),
            "Received unknown positional arguments: ['False']; a switch takes its value by an "
            "equals sign: --use_nccl=False");
  EXPECT_EQ(refusal({"--batch_size", "2", "True"}),
            "Received unknown positional arguments: ['True']");
  EXPECT_THAT(refusal({"--batch_sise=3"}), HasSubstr("Did you mean: --batch_size ?"));
}

TEST(Flags, AcceptWithOneNoticeWhatCannotMatter) {
  const CommandLine line = parse({"--xla", "--num_inter_threads=2", "--v=1"});
  EXPECT_THAT(line.notices, ElementsAre("--v is an older name of --verbosity",
                                        StartsWith("--num_inter_threads=2 has no effect: "),
                                        StartsWith("--xla=True has no effect: "),
                                        StartsWith("--verbosity=1 has no effect: ")));
}

TEST(Flags, KeepTheValuesOfThoseThatDoNotAct) {
  CommandLine line = parse({"--xla", "--kmp_blocktime=3", "--precision=tf32"});
  EXPECT_EQ(find_setting(line.settings, "xla").value, Plain(true));
  EXPECT_EQ(find_setting(line.settings, "kmp_blocktime").value, Plain(std::int64_t{3}));
  EXPECT_EQ(find_setting(line.settings, "precision").value, Plain("tf32"));
  EXPECT_EQ(find_setting(line.settings, "device").value, Plain("cpu"));  // the effective value
}

TEST(Flags, RejectWithTheAlternative) {
  EXPECT_EQ(refusal({"--nouse_chrome_trace_format"}),
            "--use_chrome_trace_format=False is not supported: StepStats text exists in "
            "TensorFlow only; keep the Chrome JSON of --trace_file");
  EXPECT_EQ(refusal({"--pretrain_dir=/x"}), "--pretrain_dir=/x is not supported: use --train_dir");
  EXPECT_THAT(refusal({"--helpxml"}), HasSubstr("use --helpfull"));
  EXPECT_THAT(refusal({"--staged_vars"}), HasSubstr("newest variables"));
  EXPECT_THAT(refusal({"--nocross_replica_sync"}), HasSubstr("each step together"));
}

TEST(Flags, SetHowImageFilesBecomeImages) {
  const DataOptions data = parse({"--data_dir=/imagenet", "--resize_method=round_robin",
                                  "--input_preprocessor=official_models_imagenet", "--ml_perf",
                                  "--nofuse_decode_and_crop", "--datasets_num_private_threads=3",
                                  "--skip_broken_records", "--class_list=names"})
                               .config.data;
  EXPECT_EQ(data.resize, ResizeChoice::round_robin);
  EXPECT_EQ(data.preprocessor, Preprocessor::official_models);
  EXPECT_TRUE(data.ml_perf);
  EXPECT_FALSE(data.decode_crop_only);
  EXPECT_TRUE(data.skip_broken);
  EXPECT_EQ(data.class_list, "names");
  EXPECT_EQ(data.threads, 3);
  EXPECT_TRUE(parse({"--cache_data"}).config.data.repeat_first);
  EXPECT_THAT(refusal({"--resize_method=crop"}), HasSubstr("round_robin"));
  EXPECT_THAT(refusal({"--input_preprocessor=inception"}), HasSubstr("official_models_imagenet"));
}

TEST(Flags, RefuseMemoryAndWeightsOfTheOriginalWithTheReasonAndTheAlternative) {
  EXPECT_THAT(refusal({"--use_unified_memory"}),
              AllOf(StartsWith("--use_unified_memory=True is not supported: pages that the driver"),
                    HasSubstr("--lms"), HasSubstr("--batch_size")));
  EXPECT_THAT(refusal({"--fp16_vars"}),
              AllOf(StartsWith("--fp16_vars=True is not supported: weights stay in float32"),
                    HasSubstr("--use_fp16 alone")));
  EXPECT_THAT(refusal({"--trt_mode=INT8"}),
              AllOf(HasSubstr("no TensorRT here; leave it out"), HasSubstr("--use_fp16")));
  EXPECT_THAT(parse({"--nouse_unified_memory", "--fp16_vars=false"}).notices, IsEmpty());
}

TEST(Flags, SayWhatReplacesValuesOfOtherReleases) {
  EXPECT_THAT(refusal({"--variable_update=kungfu"}),
              AllOf(HasSubstr("flag --variable_update=kungfu: KungFu's library is not part"),
                    HasSubstr("mpirun -np N with --variable_update=horovod")));
  EXPECT_THAT(refusal({"--variable_update=kungfu", "--kungfu_strategy=RING"}),
              HasSubstr("--kungfu_strategy is a flag of other releases: KungFu's library is not"));
  EXPECT_THAT(refusal({"--device=numa"}), HasSubstr("use --device=cpu with --num_gpus=N"));
  EXPECT_THAT(refusal({"--data_name=synthetic"}), HasSubstr("leave --data_name out"));
  EXPECT_THAT(refusal({"--data_name=flowers"}), HasSubstr("use --data_name=imagenet"));
}

TEST(Flags, RefuseAddressesWhereAPathIsMeant) {
  for (const char* flag : {"--data_dir=gs://bucket/imagenet", "--train_dir=hdfs://host:9000/run",
                           "--benchmark_log_dir=s3://b", "--result_json=file:///r.json"}) {
    EXPECT_THAT(refusal({flag}), AllOf(StartsWith(flag), HasSubstr("mount or copy"))) << flag;
  }
  EXPECT_EQ(refusal({"--benchmark_test_id=https://ci/job/1"}), "no error");
}

TEST(Flags, TakeTheOlderSwitchOfNcclForItsBackend) {
  const CommandLine line = parse({"--nouse_nccl"});
  EXPECT_EQ(line.config.comm.backend, CommBackend::own);
  EXPECT_THAT(line.notices, Contains("--nouse_nccl is an older form of --comm_backend=ring"));
  EXPECT_EQ(parse({"--nouse_nccl", "--comm_backend=mpi"}).config.comm.backend, CommBackend::mpi);
  EXPECT_EQ(parse({"--use_nccl"}).config.comm.backend, CommBackend::automatic);
  EXPECT_THAT(refusal({"--nouse_nccl", "--comm_backend=nccl"}), HasSubstr("contradict"));
}

TEST(Flags, RefuseNumbersOfGpusThatAreNone) {
  EXPECT_EQ(parse({"--gpu_indices=1,0"}).config.gpu.indices, "1,0");
  EXPECT_THAT(parse({"--device=cpu", "--gpu_indices=1,0"}).notices,
              Contains("--gpu_indices acts on a GPU only"));
  for (const char* list : {"0,", ",", "0,x", "-1", "1 0"}) {
    EXPECT_THAT(refusal({std::string("--gpu_indices=") + list}),
                HasSubstr("is no number of a GPU; give numbers from 0 on"))
        << list;
  }
  EXPECT_THAT(refusal({"--gpu_indices=2,1,2"}), HasSubstr("names GPU 2 twice"));
}

TEST(Flags, GuideTheExchangeUnlessAnAlgorithmIsNamed) {
  const auto with = [](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--num_gpus=4", "--variable_update=replicated"});
    return flags;
  };
  EXPECT_EQ(parse(with({"--comm_algo=xring#2"})).config.comm.spec, "xring#2");
  EXPECT_THAT(parse(with({"--comm_rings=2", "--comm_algo=xring"})).notices,
              Contains(HasSubstr("leave it none")));
  EXPECT_THAT(refusal(with({"--comm_algo=rd", "--all_reduce_spec=rd"})),
              HasSubstr("another name of --all_reduce_spec"));
  EXPECT_THAT(refusal(with({"--comm_topology=2by2"})), HasSubstr("is no grid of ranks"));
  EXPECT_THAT(refusal(with({"--comm_topology=2x2", "--comm_rings=2"})), HasSubstr("drop one"));
  EXPECT_THAT(refusal(with({"--comm_chunk_kb=9", "--gradient_repacking=2"})),
              HasSubstr("drop one"));
  EXPECT_THAT(refusal(with({"--comm_heartbeat_ms=900", "--comm_peer_timeout_s=1"})),
              HasSubstr("at least twice"));
}

TEST(Flags, SayOnceThatNothingIsExchanged) {
  const CommandLine alone =
      parse({"--all_reduce_spec=xring", "--gradient_repacking=2", "--comm_order=tree"});
  EXPECT_THAT(alone.notices, ElementsAre(StartsWith("nothing is exchanged by one device")));
  EXPECT_THAT(parse({"--all_reduce_spec=xring", "--num_gpus=2"}).notices, IsEmpty());
  EXPECT_THAT(parse({"--agg_small_grads_max_bytes=9", "--num_gpus=2"}).notices,
              ElementsAre(HasSubstr("act with --all_reduce_spec only")));
  EXPECT_THAT(parse({"--nocompact_gradient_transfer", "--num_gpus=2"}).notices,
              ElementsAre(HasSubstr("when computing in 16 bits only")));
  EXPECT_THAT(parse({"--hierarchical_copy", "--num_gpus=2", "--all_reduce_spec=rd"}).notices,
              ElementsAre(HasSubstr("--all_reduce_spec names the algorithm")));
}

TEST(Flags, AreRefusedIfTheExchangeCannotHonourThem) {
  EXPECT_THAT(refusal({"--hierarchical_copy"}), HasSubstr("add --num_gpus"));
  EXPECT_THAT(refusal({"--hierarchical_copy", "--num_gpus=3"}), HasSubstr("make --num_gpus even"));
  EXPECT_THAT(refusal({"--hierarchical_copy", "--num_gpus=4", "--network_topology=gcp_v100"}),
              HasSubstr("--num_gpus=8"));
  EXPECT_EQ(refusal({"--all_reduce_spec=a:1:b"}), "all_reduce_spec (a:1:b) contains invalid alg a");
  EXPECT_THAT(refusal({"--simulate_ranks=2"}), HasSubstr("--simulate names"));
  EXPECT_THAT(refusal({"--simulate_ranks=0", "--simulate=h200"}, planner), HasSubstr("from 1 to"));
  EXPECT_THAT(
      refusal({"--simulate_ranks=2", "--simulate=h200", "--variable_update=independent"}, planner),
      HasSubstr("--variable_update=independent has none"));
  EXPECT_EQ(
      refusal({"--simulate_ranks=2,8", "--simulate_ranks_per_host=3", "--simulate=h200"}, planner),
      "--simulate_ranks=8: hosts of --simulate_ranks_per_host=3 would not be full");
}

TEST(Flags, TranslateOlderNames) {
  const CommandLine line = parse({"--learning_rate=0.5"});
  EXPECT_EQ(line.config.rate.init_learning_rate, 0.5);
  EXPECT_THAT(line.notices,
              ElementsAre("--learning_rate is an older name of --init_learning_rate"));
  EXPECT_THAT(given(line), ElementsAre("init_learning_rate"));
}

TEST(Flags, NameTheirSuccessorsIfTheyAreOlder) {
  EXPECT_EQ(parse({"--num_omp_threads=2"}).config.cpu.intra_threads, 2);
  EXPECT_THAT(parse({"--num_omp_threads=2"}).notices,
              ElementsAre("--num_omp_threads is an older name of --num_intra_threads"));
  EXPECT_EQ(parse({"--gpu_mem_fraction=0.5"}, gpu).config.gpu.memory_fraction, 0.5);
  EXPECT_FALSE(parse({"--nouse_nccl"}).config.comm.use_nccl);
  EXPECT_THAT(
      parse({"--flush_stdout=true"}).notices,
      ElementsAre("--flush_stdout=True has no effect: every line is written at once anyway"));
  EXPECT_THAT(refusal({"--cpu=skl"}), HasSubstr("--cpu is a flag of other releases: use --device"));
  EXPECT_THAT(refusal({"--auto_mixed_precision"}), HasSubstr("use --precision=fp16"));
  EXPECT_THAT(refusal({"--input_data_format=NHWC"}), HasSubstr("use --data_format"));
}

TEST(Flags, DoNotExistOnlyToBeRefused) {
  for (const char* flag : {"--comm_timeline=t", "--comm_progress=inline", "--comm_cpu=1",
                           "--nocomm_priority", "--comm_replan_iter=1", "--lms_compress=fp16",
                           "--lms_slice=4", "--lms_variant=any", "--lms_plan_time=2"}) {
    EXPECT_THAT(refusal({flag}), HasSubstr("Unknown command line flag")) << flag;
  }
}

TEST(Flags, TakeANumberOfSlicesOrLeaveItToThePlanner) {
  EXPECT_EQ(parse({"--lms"}).config.lms.slices.count, 1);
  EXPECT_EQ(parse({"--lms", "--lms_slices=4"}).config.lms.slices.count, 4);
  const CommandLine any = parse({"--lms", "--lms_slices=auto", "--lms_variants=any"});
  EXPECT_FALSE(any.config.lms.slices.count);
  EXPECT_THAT(any.notices, IsEmpty());
  EXPECT_THAT(parse({"--lms", "--lms_slices=auto"}).notices,
              Contains(HasSubstr("slices with --lms_variants=any only")));
  EXPECT_THAT(
      parse({"--lms", "--lms_variants=any"}).notices,
      Contains(HasSubstr("--lms_variants acts with --lms_slices=auto, --lms_row_slices=auto or")));
  for (const char* count : {"0", "-2", "1025", "2.5", "many", ""}) {
    EXPECT_THAT(refusal({"--lms", std::string("--lms_slices=") + count}),
                HasSubstr("it takes auto, or a whole number from 1 to 1024"));
  }
  EXPECT_THAT(refusal({"--lms", "--lms_plan_file=p.json", "--lms_slices=2"}),
              HasSubstr("drop --lms_slices"));
}

TEST(Flags, TakeANumberOfSlicesOfRowsOrLeaveItToThePlanner) {
  EXPECT_EQ(parse({"--lms"}).config.lms.row_slices.count, 1);
  EXPECT_EQ(parse({"--lms", "--lms_row_slices=8"}).config.lms.row_slices.count, 8);
  const CommandLine any = parse({"--lms", "--lms_row_slices=auto", "--lms_variants=any"});
  EXPECT_FALSE(any.config.lms.row_slices.count);
  EXPECT_EQ(any.config.lms.slices.count, 1);
  EXPECT_THAT(any.notices, IsEmpty());
  EXPECT_THAT(parse({"--lms", "--lms_row_slices=auto"}).notices,
              Contains(HasSubstr("--lms_row_slices=auto slices with --lms_variants=any only")));
  EXPECT_THAT(refusal({"--lms", "--lms_row_slices=0"}),
              HasSubstr("--lms_row_slices=0: it takes auto, or a whole number from 1 to 1024"));
  EXPECT_THAT(refusal({"--lms", "--lms_plan_file=p.json", "--lms_row_slices=2"}),
              HasSubstr("drop --lms_row_slices"));
}

TEST(Flags, TakeANumberOfSlicesOfDenseLayersOrLeaveItToThePlanner) {
  EXPECT_EQ(parse({"--lms"}).config.lms.dense_slices.count, 1);
  const CommandLine eight = parse({"--lms", "--lms_dense_slices=8", "--lms_variables=on"});
  EXPECT_EQ(eight.config.lms.dense_slices.count, 8);
  EXPECT_THAT(eight.notices, IsEmpty());
  const CommandLine any = parse({"--lms", "--lms_dense_slices=auto", "--lms_variants=any"});
  EXPECT_FALSE(any.config.lms.dense_slices.count);
  EXPECT_THAT(any.notices, IsEmpty());
  EXPECT_THAT(parse({"--lms", "--lms_dense_slices=auto"}).notices,
              Contains(HasSubstr("--lms_dense_slices=auto slices with --lms_variants=any only")));
  EXPECT_THAT(parse({"--lms", "--lms_dense_slices=8"}).notices,
              Contains(HasSubstr("--lms_dense_slices acts on variables on the host")));
  EXPECT_THAT(refusal({"--lms", "--lms_dense_slices=0"}),
              HasSubstr("--lms_dense_slices=0: it takes auto, or a whole number from 1 to 1024"));
  EXPECT_THAT(refusal({"--lms", "--lms_plan_file=p.json", "--lms_dense_slices=2"}),
              HasSubstr("drop --lms_dense_slices"));
}

TEST(Flags, SimulateAGpuThatNeedNotBeThere) {
  const CommandLine line = parse({"--simulate=h200", "--use_fp16", "--eval"}, planner);
  EXPECT_EQ(line.config.device, DeviceKind::gpu);
  EXPECT_EQ(line.config.precision.type, Precision::fp16);
  EXPECT_THAT(line.notices, IsEmpty());  // not even a notice that the CPU computes
  // Also in builds without CUDA.
  EXPECT_EQ(parse({"--simulate=h200"}).config.device, DeviceKind::gpu);
  EXPECT_EQ(refusal({"--simulate=h200", "--device=cpu"}, planner),
            "--simulate=h200 plans for a GPU; drop --device=cpu");
}

TEST(Flags, ChooseTheDeviceThatExists) {
  EXPECT_EQ(parse({}, gpu).config.device, DeviceKind::gpu);
  EXPECT_EQ(parse({"--device=CPU"}, gpu).config.device, DeviceKind::cpu);
  EXPECT_EQ(parse({"--device=cpu", "--data_format=NCHW"}).config.device, DeviceKind::cpu);
  EXPECT_EQ(refusal({"--device=gpu"}),
            "--device=gpu: this build has no CUDA backend; use --device=cpu");
  EXPECT_EQ(refusal({"--device=GPU"}),
            "--device=gpu: this build has no CUDA backend; use --device=cpu");
}

TEST(Flags, TellWhyThereIsNoGpuUnlessACpuWasAskedFor) {
  const CommandLine line = parse({}, planner);
  EXPECT_EQ(line.config.device, DeviceKind::cpu);
  EXPECT_THAT(line.notices, ElementsAre("no CUDA device: none: computing on the CPU"));
  EXPECT_THAT(parse({"--device=cpu"}, planner).notices, IsEmpty());
  EXPECT_EQ(refusal({"--device=gpu"}, planner),
            "--device=gpu: no CUDA device: none; use --device=cpu");
}

TEST(Flags, LookForAGpuOnlyWhereOneCouldBeUsed) {
  constexpr RunEnvironment unasked{.gpu_backend = true, .missing_gpu = []() -> std::string {
                                     throw std::logic_error("nobody needs to know");
                                   }};
  EXPECT_EQ(parse({"--device=cpu"}, unasked).config.device, DeviceKind::cpu);
  EXPECT_EQ(parse({"--simulate=h100"}, unasked).config.device, DeviceKind::gpu);
  EXPECT_TRUE(wants_help(parse({"--help"}, unasked).config));
  EXPECT_THROW(parse({}, unasked), std::logic_error);
}

TEST(Flags, SettleThePrecision) {
  EXPECT_EQ(parse({"--precision=bf16"}, new_cpu).config.precision.type, Precision::bf16);
  EXPECT_EQ(parse({"--precision=tf32"}).config.precision.type, Precision::tf32);
  EXPECT_EQ(parse({"--use_fp16"}, gpu).config.precision.type, Precision::fp16);
  EXPECT_EQ(parse({"--use_fp16", "--precision=fp16"}, gpu).config.precision.type, Precision::fp16);
  for (const RunEnvironment& environment : {gpu, new_cpu}) {
    EXPECT_EQ(refusal({"--use_fp16", "--precision=bf16"}, environment),
              "--use_fp16 means --precision=fp16, but --precision=bf16 was given too; drop one of "
              "them");
  }
  EXPECT_THAT(refusal({"--precision=bf16"}), HasSubstr("use --precision=fp32"));
}

// Another type would measure something different from fp16.
TEST(Flags, TakeNoOtherTypeForFp16WhereThereIsNoGpu) {
  EXPECT_EQ(refusal({"--use_fp16"}, new_cpu),
            "--use_fp16 needs a GPU (--device=gpu); on this CPU use --precision=bf16");
  EXPECT_EQ(refusal({"--precision=fp16"}, new_cpu),
            "--precision=fp16 needs a GPU (--device=gpu); on this CPU use --precision=bf16");
  EXPECT_EQ(refusal({"--use_fp16", "--device=cpu"}, gpu),
            "--use_fp16 needs a GPU (--device=gpu); on this CPU use --precision=fp32");
  EXPECT_EQ(refusal({"--precision=fp16"}),
            "--precision=fp16 needs a GPU (--device=gpu); on this CPU use --precision=fp32");
}

TEST(Flags, GuessTheDataSetFromThePath) {
  EXPECT_EQ(parse({"--data_dir=/data/cifar10"}).config.data.set->name, "cifar10");
  EXPECT_EQ(parse({"--data_dir=/imagenet", "--data_name=mnist"}).config.data.set->name, "mnist");
  const tests::TemporaryFolder folder;
  EXPECT_THAT(refusal({"--data_dir=" + (folder / "")}),
              HasSubstr("cannot tell the data set from --data_dir="));
}

TEST(Flags, TellOfADataFolderThatIsMissingOrNotNamed) {
  EXPECT_EQ(refusal({"--data_dir=/data/x"}), "--data_dir=/data/x: there is no such folder");
  EXPECT_THAT(parse({"--data_dir="}).notices,
              ElementsAre("--data_dir= names no folder: the images are synthetic"));
}

TEST(Flags, SuggestTheValueThatWasMeant) {
  EXPECT_THAT(refusal({"--precision=fp23"}), HasSubstr("; did you mean fp32?"));
  EXPECT_THAT(refusal({"--variable_update=replicate"}), HasSubstr("; did you mean replicated?"));
  EXPECT_THAT(refusal({"--lms_policy=plan"}), HasSubstr("; did you mean planned?"));
  EXPECT_THAT(refusal({"--data_name=cifar"}),
              AllOf(HasSubstr("--data_name=cifar: there is no such data set"),
                    HasSubstr("; did you mean cifar10?")));
  EXPECT_THAT(refusal({"--all_reduce_spec=rign", "--num_gpus=2"}),
              HasSubstr("invalid alg rign; did you mean ring?"));
  EXPECT_THAT(refusal({"--comm_fault=rank=0,what=stpo", "--num_gpus=2"}),
              HasSubstr("; did you mean stop?"));
  EXPECT_THAT(refusal({"--optimizer=lion"}), Not(HasSubstr("did you mean")));
}

TEST(Flags, RefuseDataSetsThatCannotBeRead) {
  EXPECT_THAT(refusal({"--data_name=coco", "--model=ssd300"}),
              AllOf(HasSubstr("--data_name=coco: this program trains image classifiers"),
                    HasSubstr("object detection"), HasSubstr("use imagenet, cifar10")));
  EXPECT_THAT(refusal({"--data_dir=/librispeech"}), HasSubstr("speech recognition"));
  EXPECT_THAT(refusal({"--data_name=tensors"}), HasSubstr("--data_dir=FILE.safetensors"));
}

TEST(Flags, TakeAllUpdateModes) {
  for (const char* mode :
       {"parameter_server", "replicated", "independent", "distributed_replicated",
        "distributed_all_reduce", "collective_all_reduce", "horovod", "ddl"}) {
    const std::string flag = std::string("--variable_update=") + mode;
    EXPECT_EQ(word_of(parse({flag}).config.variable_update), mode);
  }
  for (const char* mode : {"horovod", "ddl"}) {
    EXPECT_THAT(refusal({"--num_gpus=2", "--device=cpu", std::string("--variable_update=") + mode}),
                HasSubstr("mpirun -np N"));
  }
}

TEST(Flags, TakeDdlOptionsOfTheEnvironmentWhereNoneAreGiven) {
  const RunEnvironment environment{.ddl_options = "-mode r:2x2"};
  const auto options = [&](const std::vector<std::string>& words) {
    return parse_flags(words, environment).config.comm.ddl_options;
  };
  EXPECT_EQ(options({"--variable_update=ddl"}), "-mode r:2x2");
  EXPECT_EQ(options({"--variable_update=ddl", "--ddl_options=-mode c:4"}), "-mode c:4");
  EXPECT_EQ(options({"--variable_update=horovod"}), std::nullopt);
}

TEST(Flags, CheckCombinations) {
  EXPECT_THAT(refusal({"--forward_only", "--eval", "--train_dir=/x"}),
              StartsWith("--forward_only and --eval"));
}

TEST(Flags, TellWhichFlagsAreIdle) {
  EXPECT_THAT(parse({"--trace_file=t.json", "--num_warmup_batches=1"}).notices,
              ElementsAre(HasSubstr("no trace")));
  EXPECT_THAT(parse({"--num_eval_batches=3"}).notices, ElementsAre(HasSubstr("only if")));
  EXPECT_THAT(parse({"--trace_file=t.json"}).notices, IsEmpty());
}

TEST(Flags, KeepACpuOnANumaNode) {
  EXPECT_TRUE(parse({"--use_numa_affinity", "--device=cpu"}).config.cpu.numa_affinity);
  EXPECT_THAT(parse({"--use_numa_affinity"}, gpu).notices,
              ElementsAre("--use_numa_affinity acts on CPU devices only"));
}

TEST(Flags, TellWhichFlagsActOnAGpuOnly) {
  const std::vector<std::string> flags{"--nouse_cuda_graph", "--gpu_memory_frac_for_testing=0.5"};
  EXPECT_THAT(parse(flags).notices, ElementsAre("--gpu_memory_frac_for_testing acts on a GPU only",
                                                "--nouse_cuda_graph acts on a GPU only"));
  EXPECT_THAT(parse(flags, gpu).notices, IsEmpty());
  EXPECT_THAT(parse({"--sync_each_kernel"}).notices,
              ElementsAre("--sync_each_kernel acts on a GPU only"));
}

TEST(Flags, AskForHelpBeforeAnythingIsChecked) {
  const CommandLine line = parse({"--help", "--num_gpus=7", "word"});
  EXPECT_TRUE(wants_help(line.config));
  EXPECT_FALSE(wants_help(parse({}).config));
}

}  // namespace
}  // namespace cnn::bench
