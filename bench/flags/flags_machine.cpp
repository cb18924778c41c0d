#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

constexpr std::string_view intel_openmp =
    "only Intel's OpenMP runtime reads it and this program runs on GNU's; see OMP_PROC_BIND, "
    "OMP_PLACES and GOMP_SPINCOUNT";

constexpr Flag device_rows[] = {
    {.name = "device",
     .target = reaches<&Config::device>,
     .help = "where to compute; unset = gpu if this build and machine have one, else cpu",
     .choices = "cpu|gpu|CPU|GPU"},
    {.name = "num_gpus",
     .target = reaches<&Config::num_gpus>,
     .help = "number of devices; the batch size is per device",
     .treatment = Treatment::later,
     .note = "one device computes; raise --batch_size instead",
     .at_least = 1},
    {.name = "gpu_indices",
     .target = reaches<&Config::gpu_indices>,
     .help = "order of the GPUs in rings",
     .treatment = Treatment::later,
     .note = "one device computes; CUDA_VISIBLE_DEVICES selects GPUs"},
    {.name = "local_parameter_device",
     .target = reaches<&Config::local_parameter_device>,
     .help = "where variables live; a run on one CPU keeps them in its memory in any case",
     .choices = "cpu|gpu|CPU|GPU"},
    {.name = "data_format",
     .target = reaches<&Config::data_format>,
     .help = "layout that the header names; the layout in memory is planned per tensor",
     .choices = "NHWC|NCHW"},
};

constexpr Flag cpu_rows[] = {
    {.name = "num_intra_threads",
     .target = reaches<&Config::num_intra_threads>,
     .help = "threads that work on one operation; unset or 0 = all cores",
     .at_least = 0},
    {.name = "num_inter_threads",
     .target = reaches<&Config::num_inter_threads>,
     .help = "operations that run side by side",
     .treatment = Treatment::accepted,
     .note = "operations run in a planned order, each on all threads",
     .at_least = 0},
    {.name = "use_numa_affinity",
     .target = reaches<&Config::use_numa_affinity>,
     .help = "bind CPU devices to NUMA nodes",
     .treatment = Treatment::later,
     .note = "start the program under numactl instead"},
    {.name = "mkl",
     .target = reaches<&Config::mkl>,
     .help = "ask for the CPU-optimised kernels (oneDNN); on a CPU they are always used"},
    {.name = "kmp_blocktime",
     .target = reaches<&Config::kmp_blocktime>,
     .help = "milliseconds for which an idle OpenMP thread spins",
     .treatment = Treatment::accepted,
     .note = intel_openmp,
     .at_least = 0},
    {.name = "kmp_affinity",
     .target = reaches<&Config::kmp_affinity>,
     .help = "binding of OpenMP threads",
     .treatment = Treatment::accepted,
     .note = intel_openmp},
    {.name = "kmp_settings",
     .target = reaches<&Config::kmp_settings>,
     .help = "1 makes OpenMP print its settings",
     .treatment = Treatment::accepted,
     .note = "only Intel's OpenMP runtime reads it; OMP_DISPLAY_ENV=true does the same here"},
};

constexpr Flag gpu_rows[] = {
    {.name = "autotune_threshold",
     .target = reaches<&Config::autotune_threshold>,
     .help = "trials per convolution algorithm on a GPU; also lengthens the default warm-up",
     .at_least = 0},
    {.name = "gpu_memory_frac_for_testing",
     .target = reaches<&Config::gpu_memory_frac_for_testing>,
     .help = "part of the GPU's memory that may be used; 0 = all",
     .at_least = 0},
    {.name = "use_unified_memory",
     .target = reaches<&Config::use_unified_memory>,
     .help = "allocate managed memory, which may exceed the GPU's",
     .treatment = Treatment::later,
     .note = "memory is the device's own; make the batch smaller"},
    {.name = "winograd_nonfused",
     .target = reaches<&Config::winograd_nonfused>,
     .help = "allow Winograd's algorithm for convolutions of 3 x 3 windows on a CPU; a GPU takes "
             "what cuDNN proposes"},
    {.name = "batchnorm_persistent",
     .target = reaches<&Config::batchnorm_persistent>,
     .help = "use cuDNN's persistent batch normalisation",
     .treatment = Treatment::accepted,
     .note = "batch normalisation runs in this program's own kernels"},
    {.name = "sync_on_finish",
     .target = reaches<&Config::sync_on_finish>,
     .help = "wait for the device at the end of each step; every step does"},
    {.name = "allow_growth",
     .target = reaches<&Config::allow_growth>,
     .help = "take GPU memory as needed rather than at the start",
     .treatment = Treatment::accepted,
     .note = "what a run needs is planned, and just that is taken at the start"},
};

constexpr Flag fp16_rows[] = {
    {.name = "use_fp16",
     .target = reaches<&Config::use_fp16>,
     .help = "16-bit activations: fp16 on a GPU, bf16 on a CPU; see --precision"},
    {.name = "fp16_loss_scale",
     .target = reaches<&Config::fp16_loss_scale>,
     .help = "factor on the loss during back-propagation; unset = 128",
     .at_least = 0},
    {.name = "fp16_vars",
     .target = reaches<&Config::fp16_vars>,
     .help = "store the variables in 16 bits too",
     .treatment = Treatment::later,
     .note = "the masters of the weights stay in float32; leave it out"},
    {.name = "fp16_enable_auto_loss_scale",
     .target = reaches<&Config::fp16_enable_auto_loss_scale>,
     .help = "adapt the loss scale to overflows"},
    {.name = "fp16_inc_loss_scale_every_n",
     .target = reaches<&Config::fp16_inc_loss_scale_every_n>,
     .help = "clean steps before the adaptive scale doubles",
     .at_least = 1},
};

}  // namespace

std::vector<FlagGroup> machine_flags() {
  return {{"device", "Devices", device_rows},
          {"cpu", "CPU", cpu_rows},
          {"gpu", "GPU", gpu_rows},
          {"fp16", "16-bit floating point", fp16_rows}};
}

}  // namespace cnn::bench
