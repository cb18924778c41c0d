#include "bench/flags/conditions.h"
#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

using enum FlagSupport;
using enum Type;

constexpr std::string_view intel_openmp =
    "only Intel's OpenMP runtime reads it and this program runs on GNU's; see OMP_PROC_BIND, "
    "OMP_PLACES and GOMP_SPINCOUNT";

constexpr NoEffectRule no_fp16{
    [](const Config& c) { return !c.precision.use_fp16 && c.precision.type != Precision::fp16; },
    "--fp16_loss_scale and --fp16_enable_auto_loss_scale act with --use_fp16 or --precision=fp16 "
    "only"};

constexpr Flag device_rows[] = {
    {.name = "device",
     .help = "where to compute; unset = gpu if this build and machine have one, else cpu",
     .member = &at<&Config::device>},
    {.name = "num_gpus",
     .help = "number of devices; the batch size is per device. CPUs are parts of the processor",
     .range = between(1, 64),
     .member = &at<&Config::num_gpus>},
    {.name = "gpu_indices",
     .help = "numbers of the GPUs of this host's ranks, such as 1,0: rank 0 computes on the first, "
             "rings pass them in this order; empty = 0,1,2...",
     .member = &at<&Config::gpu, &GpuFlags::indices>,
     .no_effect = {{on_cpu, "--gpu_indices acts on a GPU only"}}},
    {"local_parameter_device",
     text,
     "gpu",
     honoured,
     "",
     "where variables live; a run on one CPU keeps them in its memory in any case",
     {},
     "cpu|gpu|CPU|GPU"},
    {.name = "data_format",
     .help = "layout that the header names; the layout in memory is planned per tensor",
     .member = &at<&Config::report, &ReportOptions::data_format>},
};

constexpr Flag cpu_rows[] = {
    {.name = "num_intra_threads",
     .help = "threads that work on one operation; unset or 0 = all cores",
     .range = at_least(0),
     .member = &at<&Config::cpu, &CpuFlags::intra_threads>},
    {"num_inter_threads", integer, "0", accepted,
     "operations run in a planned order, each on all threads", "operations that run side by side",
     at_least(0)},
    {.name = "use_numa_affinity",
     .help = "keep a CPU that is the only device on the processors of the first NUMA node; several "
             "devices stay on processors of their own in any case",
     .member = &at<&Config::cpu, &CpuFlags::numa_affinity>,
     .no_effect = {{[](const Config& c) { return !on_cpu(c); },
                    "--use_numa_affinity acts on CPU devices only"}}},
    {"mkl", boolean, "False", honoured, "",
     "ask for the CPU-optimised kernels (oneDNN); on a CPU they are always used"},
    {"kmp_blocktime", integer, "0", accepted, intel_openmp,
     "milliseconds for which an idle OpenMP thread spins", at_least(0)},
    {"kmp_affinity", text, "granularity=fine,verbose,compact,1,0", accepted, intel_openmp,
     "binding of OpenMP threads"},
    {"kmp_settings", integer, "1", accepted,
     "only Intel's OpenMP runtime reads it; OMP_DISPLAY_ENV=true does the same here",
     "1 makes OpenMP print its settings"},
};

constexpr Flag gpu_rows[] = {
    {.name = "autotune_threshold",
     .help = "trials per convolution algorithm on a GPU; also lengthens the default warm-up",
     .range = at_least(0),
     .member = &at<&Config::size, &SizeOptions::autotune_threshold>},
    {.name = "gpu_memory_frac_for_testing",
     .help = "part of the GPU's memory that may be used; 0 = all",
     .range = at_least(0),
     .member = &at<&Config::gpu, &GpuFlags::memory_fraction>,
     .no_effect = {{on_cpu, "--gpu_memory_frac_for_testing acts on a GPU only"}}},
    {"use_unified_memory", boolean, "None", rejected,
     "pages that the driver moves at will would decide the speed; --lms computes what does not fit "
     "into the GPU's memory by a plan of what moves to the host when, or make --batch_size smaller",
     "allocate managed memory, which may exceed the GPU's"},
    {.name = "winograd_nonfused",
     .help = "allow Winograd's algorithm for convolutions of 3 x 3 windows on a CPU; a GPU takes "
             "what cuDNN proposes",
     .member = &at<&Config::cpu, &CpuFlags::winograd>},
    {"batchnorm_persistent", boolean, "True", accepted,
     "batch normalisation runs in this program's own kernels",
     "use cuDNN's persistent batch normalisation"},
    {"sync_on_finish", boolean, "False", honoured, "",
     "wait for the device at the end of each step; every step does"},
    {"allow_growth", boolean, "None", accepted,
     "what a run needs is planned, and just that is taken at the start",
     "take GPU memory as needed rather than at the start"},
};

constexpr Flag fp16_rows[] = {
    {.name = "use_fp16",
     .help = "the same as --precision=fp16, which needs a GPU; on a CPU use --precision=bf16",
     .member = &at<&Config::precision, &PrecisionOptions::use_fp16>},
    {.name = "fp16_loss_scale",
     .help = "factor on the loss during back-propagation; unset or 0 = 128",
     .range = at_least(0),
     .member = &at<&Config::precision, &PrecisionOptions::loss_scale>,
     .no_effect = {no_fp16}},
    {"fp16_vars", boolean, "False", rejected,
     "weights stay in float32, because most updates are smaller than 16 bits can add; kernels read "
     "16-bit copies with --use_fp16 alone, so leave it out",
     "store the variables in 16 bits too"},
    {.name = "fp16_enable_auto_loss_scale",
     .help = "adapt the loss scale to overflows",
     .member = &at<&Config::precision, &PrecisionOptions::automatic_loss_scale>,
     .no_effect = {no_fp16}},
    {.name = "fp16_inc_loss_scale_every_n",
     .help = "clean steps before the adaptive scale doubles",
     .range = at_least(1),
     .member = &at<&Config::precision, &PrecisionOptions::loss_scale_every_n>,
     .no_effect = {{[](const Config& c) { return !c.precision.automatic_loss_scale; },
                    "--fp16_inc_loss_scale_every_n acts with --fp16_enable_auto_loss_scale only"}}},
};

}  // namespace

std::vector<FlagGroup> machine_flags() {
  return {{"device", "Devices", device_rows},
          {"cpu", "CPU", cpu_rows},
          {"gpu", "GPU", gpu_rows},
          {"fp16", "16-bit floating point", fp16_rows}};
}

}  // namespace cnn::bench
