#include "bench/flags/conditions.h"
#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

using enum FlagSupport;
using enum Type;

constexpr std::string_view one_log = "there is no absl log; errors and notices go to stderr";
constexpr std::string_view other_program = "it belongs to the original's test launcher";

std::vector<std::string> data_sets_with_networks() {
  std::vector<std::string> names;
  for (const data::Row& row : data::catalog()) {
    if (row.has_networks) {
      names.emplace_back(row.name);
    }
  }
  return names;
}

std::vector<std::string> simulated_machines() {
  return {"a100", "h100", "h200", "p100-nvlink1", "p100-pcie3", "v100-nvlink2"};
}

constexpr Member tensors_as =
    limited(at<&Config::data, &DataOptions::tensors_as>, data_sets_with_networks);

// A GPU tunes unless it is told not to, a CPU only if it is told to.
constexpr NoEffectRule no_tuning{
    [](const Config& c) { return on_cpu(c) && !c.gpu.tune.value_or(false); },
    "--tune_seconds and --plan_cache act on a CPU with --tune only"};
constexpr NoEffectRule search_times_nothing{
    [](const Config& c) { return c.search.any() && c.gpu.tune.value_or(false); },
    "--tune does not act with --find_max_batch or --find_max_image_size: sizes that do not run are "
    "not timed"};

constexpr Flag our_rows[] = {
    {.name = "precision",
     .help = "type of activations and products; weights are kept in float32. On a CPU the first "
             "three are plain float32",
     .member = &at<&Config::precision, &PrecisionOptions::type>},
    {.name = "dropout",
     .help = "--nodropout makes training comparable with other programs; it also turns off drop "
             "path, which nasnet has",
     .member = &at<&Config::model, &ModelOptions::dropout>},
    {.name = "auxiliary_head",
     .help = "train the second classifier of inception3, nasnet and nasnetlarge too, its loss "
             "weighted by 0.4; evaluations measure the first, and --eval needs the flag of the "
             "training. tf_cnn_benchmarks never turns it on",
     .member = &at<&Config::model, &ModelOptions::auxiliary_head>,
     .no_effect = {{[](const Config& c) { return c.mode.forward_only; },
                    "--auxiliary_head does not act with --forward_only"}}},
    {.name = "tune",
     .help =
         "time the candidate algorithms of convolutions that --plan_cache has no choice for, and "
         "keep the fastest there. On a GPU those of cuDNN, and with --fusion=conv each layer fused "
         "and plain; unset = yes, and --notune takes cuDNN's first proposals, fuses all it can, "
         "and does what a --plan_cache that is given says. On a CPU oneDNN's kernels in each "
         "layout, minimal filtering, our own 1 x 1 convolutions and weight gradients; unset = no: "
         "fixed rules choose",
     .member = &at<&Config::gpu, &GpuFlags::tune>,
     .no_effect = {search_times_nothing}},
    {.name = "tune_seconds",
     .help = "seconds that --tune may take at the start of a run; what is left takes cuDNN's first "
             "proposals, on a CPU what the rules say, and is timed by the next run",
     .range = at_least(0),
     .member = &at<&Config::gpu, &GpuFlags::tune_seconds>,
     .no_effect = {no_tuning,
                   {[](const Config& c) { return !on_cpu(c) && !c.gpu.tune.value_or(true); },
                    "--tune_seconds does not act with --notune"}}},
    {.name = "plan_cache",
     .help = "file of stored algorithm choices and of times of layers fused and plain, by device, "
             "driver and versions of cuDNN and cuBLASLt, on a CPU by processor, instruction sets, "
             "threads and version of oneDNN; equal files give equal bits. Unset = "
             "cnn_benchmarks/plan_cache in $XDG_CACHE_HOME or ~/.cache; with --notune none",
     .member = &at<&Config::gpu, &GpuFlags::plan_cache>,
     .no_effect =
         {no_tuning,
          {simulates,
           "--plan_cache does not act with --simulate: cuDNN's first proposals are planned"}}},
    {.name = "result_json",
     .help = "write the numbers of the run to this file, also when it fails",
     .member = &at<&Config::report, &ReportOptions::result_json>},
    {.name = "html_report",
     .help = "write a page that shows the run to this file: steps, losses, memory, lanes, "
             "operations; ten timed steps are profiled for it",
     .member = &at<&Config::report, &ReportOptions::html_report>},
    {.name = "steps_csv",
     .help =
         "write the timed steps to this file as a table: one line each, with its seconds, speed, "
         "losses, learning rate and whether something disturbed it",
     .member = &at<&Config::report, &ReportOptions::steps_csv>,
     .needs_steps = true},
    {.name = "take_turns",
     .help = "share the machine with another run that names the same file: each builds, warms up "
             "and then times steps for half a second at a time while the other waits, so that "
             "their speeds can be compared",
     .member = &at<&Config::report, &ReportOptions::take_turns>,
     .no_effect =
         {{[](const Config& c) { return c.mode.eval; },
           "--take_turns shares timed steps of training or --forward_only; it does not act "
           "with --eval"}},
     .needs_steps = true},
    {.name = "measure_ceilings",
     .help = "after the last step, measure for a second what the device reaches at best, and say "
             "how near the steps came to it",
     .member = &at<&Config::report, &ReportOptions::measure_ceilings>,
     .needs_steps = true},
    {.name = "print_plan",
     .help = "print nodes, layouts, memory offsets and the peak before running",
     .member = &at<&Config::report, &ReportOptions::print_plan>,
     .no_effect = {{makes_no_plan,
                    "--print_plan shows the step of a network, and none is planned"}}},
    {.name = "tensors_as",
     .help = "data set whose classes and networks --data_name=tensors stands for",
     .member = &tensors_as,
     .no_effect = {{[](const Config& c) { return c.data.row().has_networks; },
                    "--tensors_as acts with --data_name=tensors only"}}},
    {.name = "synthetic_labels",
     .help = "synthetic labels drawn anew each step, or once so that the loss can fall",
     .member = &at<&Config::data, &DataOptions::synthetic_labels>,
     .no_effect = {{on_real_data, "--synthetic_labels acts on synthetic data only"}}},
    {.name = "simulate",
     .help =
         "plan the run for the machine of that name (p100-pcie3, p100-nvlink1, v100-nvlink2, a100, "
         "h100, h200) or of that profile file, which need not be there, and predict speed and "
         "memory, with --lms those of its plan; nothing is run",
     .member = &at<&Config::gpu, &GpuFlags::simulate>,
     .known = simulated_machines},
    {.name = "find_max_batch",
     .help = "find the largest --batch_size that memory allows, with --lms by its plans, on this "
             "device or a simulated one; nothing is run",
     .member = &at<&Config::search, &SearchFlags::batch>},
    {.name = "find_max_image_size",
     .help = "find the largest --image_size, in steps of 16 pixels, for the given --batch_size",
     .member = &at<&Config::search, &SearchFlags::image_size>},
    {.name = "fusion",
     .help =
         "how far the graph is rewritten: none; bn puts ReLUs and joins into the ops before them, "
         "and on CUDA branches into the image that a concat makes of them; conv also puts batch "
         "norms into the convolutions around them (on CUDA with fp16), but for those that --tune "
         "has found faster outside; auto goes as far as the backend can",
     .member = &at<&Config::graph, &GraphOptions::fusion>},
    {.name = "use_cuda_graph",
     .help = "on a GPU, capture the step into a CUDA graph after the first one and replay it",
     .member = &at<&Config::gpu, &GpuFlags::graph>,
     .no_effect = {{on_cpu, "--nouse_cuda_graph acts on a GPU only"}}},
    {.name = "sync_each_kernel",
     .help = "on a GPU, wait for every kernel and copy, so that an error of the device names the "
             "operation that made it; steps get slow",
     .member = &at<&Config::gpu, &GpuFlags::sync_each_kernel>,
     .no_effect = {{on_cpu, "--sync_each_kernel acts on a GPU only"}}},
    {.name = "deterministic",
     .help = "same bits from run to run; --nodeterministic permits faster reductions",
     .member = &at<&Config::gpu, &GpuFlags::deterministic>,
     .no_effect = {{on_cpu, "--nodeterministic acts on a GPU only"}}},
};

constexpr Flag legacy_rows[] = {
    {.name = "learning_rate",
     .help = "older name of --init_learning_rate",
     .renamed_to = "init_learning_rate"},
    {.name = "gpu_mem_fraction",
     .help = "older name of --gpu_memory_frac_for_testing",
     .renamed_to = "gpu_memory_frac_for_testing"},
    {.name = "num_omp_threads",
     .help = "older name of --num_intra_threads",
     .renamed_to = "num_intra_threads"},
    {.name = "use_nccl",
     .help = "older form of --comm_backend: --nouse_nccl means --comm_backend=ring",
     .member = &at<&Config::comm, &CommFlags::use_nccl>},
    {"flush_stdout", boolean, "False", accepted, "every line is written at once anyway",
     "write every line at once"},
    {"use_data_sets", boolean, "False", accepted,
     "both values read the data by this program's one input pipeline",
     "older name of --use_datasets"},
    {.name = "cache_data",
     .help = "older name of --datasets_repeat_cached_sample",
     .renamed_to = "datasets_repeat_cached_sample"},
    {"use_multi_device_iterator", boolean, "True", accepted,
     "both values read the data by this program's one input pipeline",
     "older choice between two prefetchers"},
    {"enable_layout_optimizer", boolean, "False", accepted,
     "the layout of every tensor in memory is planned in any case",
     "older switch of TensorFlow's layout pass"},
    {"pretrain_dir", text, "None", rejected, "use --train_dir",
     "older way to start from a checkpoint"},
    {"result_storage", text, "None", rejected, "use --benchmark_log_dir or --result_json",
     "upload of results to a private store"},
};

constexpr Flag absl_rows[] = {
    {.name = "help",
     .help = "print the flags that most runs need, and exit; --help=WORD prints the group of that "
             "name, or the flags that mention the word",
     .member = &at<&Config::help, &HelpFlags::usual>},
    {.name = "helpshort",
     .help = "print the flags that most runs need, one line each, and exit",
     .member = &at<&Config::help, &HelpFlags::brief>},
    {.name = "helpfull",
     .help = "print every flag, those without effect last, and exit",
     .member = &at<&Config::help, &HelpFlags::full>},
    {.name = "help_format",
     .help = "print all flags as a manual page (man) or as a script that completes them in bash, "
             "and exit",
     .member = &at<&Config::help, &HelpFlags::format>},
    {.name = "version",
     .help = "print the version of the program, its commit and its libraries, and exit",
     .member = &at<&Config::help, &HelpFlags::version>},
    {.name = "list_models",
     .help = "print the networks with their data set, image size, batch size and parameters, and "
             "exit; with --data_name those of that data set",
     .member = &at<&Config::help, &HelpFlags::list_models>},
    {"helpxml", boolean, "False", rejected, "use --helpfull", "the help as XML"},
    {"flagfile", text, "", honoured, "",
     "read more flags from this file, one on a line; # begins a comment"},
    {"undefok", texts, "", honoured, "", "names of flags that may be unknown, between commas"},
    {.name = "v",
     .support = accepted,
     .note = one_log,
     .help = "short name of --verbosity",
     .renamed_to = "verbosity"},
    {"verbosity", integer, "-1", accepted, one_log, "verbosity of the absl log"},
    {"logtostderr", boolean, "False", accepted, one_log, "absl log to stderr"},
    {"alsologtostderr", boolean, "False", accepted, one_log, "absl log to stderr as well"},
    {"stderrthreshold", text, "fatal", accepted, one_log,
     "level from which the absl log goes to stderr"},
    {"log_dir", text, "", accepted, one_log, "folder of the absl log"},
};

constexpr Flag test_rows[] = {
    {"fake_input", text, "none", accepted, other_program, "stub input of the distributed tests"},
    {"run_distributed_tests", boolean, "False", accepted, other_program,
     "also run the distributed tests"},
    {"full_tests", boolean, "False", accepted, other_program, "run the long list of tests"},
};

}  // namespace

std::vector<FlagGroup> other_flags() {
  return {{"ours", "This program's own", our_rows},
          {"legacy", "Names of older versions", legacy_rows},
          {"absl", "Help and flag files", absl_rows},
          {"test", "Tests of the original", test_rows}};
}

}  // namespace cnn::bench
