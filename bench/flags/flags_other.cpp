#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

constexpr std::string_view one_log = "there is no absl log; errors and notices go to stderr";
constexpr std::string_view other_program = "it belongs to the original's test launcher";

constexpr Flag our_rows[] = {
    {.name = "precision",
     .target = reaches<&Config::precision>,
     .help = "type of activations and products; weights are kept in float32. On a CPU the first "
             "three are plain float32",
     .choices = "fp32|tf32|fp32_strict|fp16|bf16"},
    {.name = "dropout",
     .target = reaches<&Config::dropout>,
     .help = "--nodropout makes training comparable with other programs"},
    {.name = "tune",
     .target = reaches<&Config::tune>,
     .help = "on a GPU, time cuDNN's candidate algorithms for what --plan_cache has no choice for, "
             "and keep the fastest there"},
    {.name = "plan_cache",
     .target = reaches<&Config::plan_cache>,
     .help = "on a GPU, file of stored algorithm choices; equal files give equal bits. Without it, "
             "or for what it lacks, cuDNN's first proposal is taken"},
    {.name = "result_json",
     .target = reaches<&Config::result_json>,
     .help = "write the numbers of the run to this file, also when it fails"},
    {.name = "print_plan",
     .target = reaches<&Config::print_plan>,
     .help = "print nodes, layouts, memory offsets and the peak before running"},
    {.name = "tensors_as",
     .target = reaches<&Config::tensors_as>,
     .help = "data set whose classes and networks --data_name=tensors stands for",
     .choices = "imagenet|cifar10|mnist"},
    {.name = "synthetic_labels",
     .target = reaches<&Config::synthetic_labels>,
     .help = "synthetic labels drawn anew each step, or once so that the loss can fall",
     .choices = "random|fixed"},
    {.name = "simulate",
     .target = reaches<&Config::simulate>,
     .help =
         "plan the run for the GPU of that name (a100, h100, h200), which need not be there, and "
         "predict its speed and memory from the ceilings of that GPU; nothing is run"},
    {.name = "fusion",
     .target = reaches<&Config::fusion>,
     .help =
         "how far the graph is rewritten: none; bn puts ReLUs and joins into the ops before them, "
         "and on CUDA branches into the image that a concat makes of them; conv also puts batch "
         "norms into the convolutions around them (on CUDA with fp16); auto goes as far as the "
         "backend can",
     .choices = "auto|none|bn|conv"},
    {.name = "use_cuda_graph",
     .target = reaches<&Config::use_cuda_graph>,
     .help = "on a GPU, capture the step into a CUDA graph after the first one and replay it"},
    {.name = "deterministic",
     .target = reaches<&Config::deterministic>,
     .help = "same bits from run to run; --nodeterministic permits faster reductions"},
};

constexpr Flag legacy_rows[] = {
    {.name = "learning_rate",
     .target = reaches<&Config::init_learning_rate>,
     .help = "older name of --init_learning_rate",
     .renamed_to = "init_learning_rate"},
    {.name = "use_nccl",
     .target = reaches<&Config::use_nccl>,
     .help = "older form of --all_reduce_spec=nccl",
     .treatment = Treatment::later,
     .note = "one device computes, so nothing is exchanged; leave it out"},
    {.name = "use_data_sets",
     .target = reaches<&Config::use_data_sets>,
     .help = "older name of --use_datasets",
     .treatment = Treatment::accepted,
     .note = "there is one input pipeline here"},
    {.name = "cache_data",
     .target = reaches<&Config::datasets_repeat_cached_sample>,
     .help = "older name of --datasets_repeat_cached_sample",
     .renamed_to = "datasets_repeat_cached_sample"},
    {.name = "use_multi_device_iterator",
     .target = reaches<&Config::use_multi_device_iterator>,
     .help = "older choice between two prefetchers",
     .treatment = Treatment::accepted,
     .note = "there is one input pipeline here"},
    {.name = "enable_layout_optimizer",
     .target = reaches<&Config::enable_layout_optimizer>,
     .help = "older switch of TensorFlow's layout pass",
     .treatment = Treatment::accepted,
     .note = "layouts are always planned"},
    {.name = "pretrain_dir",
     .target = reaches<&Config::pretrain_dir>,
     .help = "older way to start from a checkpoint",
     .treatment = Treatment::rejected,
     .note = "use --train_dir"},
    {.name = "result_storage",
     .target = reaches<&Config::result_storage>,
     .help = "upload of results to a private store",
     .treatment = Treatment::rejected,
     .note = "use --benchmark_log_dir or --result_json"},
};

constexpr Flag absl_rows[] = {
    {.name = "help",
     .target = reaches<&Config::help>,
     .help = "print the flags that act, and exit"},
    {.name = "helpshort",
     .target = reaches<&Config::helpshort>,
     .help = "print the flags of the first groups, and exit"},
    {.name = "helpfull",
     .target = reaches<&Config::helpfull>,
     .help = "print every flag, also those without effect, and exit"},
    {.name = "helpxml",
     .target = reaches<&Config::helpxml>,
     .help = "the help as XML",
     .treatment = Treatment::rejected,
     .note = "use --helpfull"},
    {.name = "flagfile",
     .target = reaches<&Config::flagfile>,
     .help = "read more flags from this file, one on a line; # begins a comment"},
    {.name = "undefok",
     .target = reaches<&Config::undefok>,
     .help = "names of flags that may be unknown, between commas"},
    {.name = "v",
     .target = reaches<&Config::verbosity>,
     .help = "short name of --verbosity",
     .treatment = Treatment::accepted,
     .note = one_log,
     .renamed_to = "verbosity"},
    {.name = "verbosity",
     .target = reaches<&Config::verbosity>,
     .help = "verbosity of the absl log",
     .treatment = Treatment::accepted,
     .note = one_log},
    {.name = "logtostderr",
     .target = reaches<&Config::logtostderr>,
     .help = "absl log to stderr",
     .treatment = Treatment::accepted,
     .note = one_log},
    {.name = "alsologtostderr",
     .target = reaches<&Config::alsologtostderr>,
     .help = "absl log to stderr as well",
     .treatment = Treatment::accepted,
     .note = one_log},
    {.name = "stderrthreshold",
     .target = reaches<&Config::stderrthreshold>,
     .help = "level from which the absl log goes to stderr",
     .treatment = Treatment::accepted,
     .note = one_log},
    {.name = "log_dir",
     .target = reaches<&Config::log_dir>,
     .help = "folder of the absl log",
     .treatment = Treatment::accepted,
     .note = one_log},
};

constexpr Flag test_rows[] = {
    {.name = "fake_input",
     .target = reaches<&Config::fake_input>,
     .help = "stub input of the distributed tests",
     .treatment = Treatment::accepted,
     .note = other_program},
    {.name = "run_distributed_tests",
     .target = reaches<&Config::run_distributed_tests>,
     .help = "also run the distributed tests",
     .treatment = Treatment::accepted,
     .note = other_program},
    {.name = "full_tests",
     .target = reaches<&Config::full_tests>,
     .help = "run the long list of tests",
     .treatment = Treatment::accepted,
     .note = other_program},
};

}  // namespace

std::vector<FlagGroup> other_flags() {
  return {{"ours", "This program's own", our_rows},
          {"legacy", "Names of older versions", legacy_rows},
          {"absl", "Help and flag files", absl_rows},
          {"test", "Tests of the original", test_rows}};
}

}  // namespace cnn::bench
