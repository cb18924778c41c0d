#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

using enum FlagSupport;
using enum Type;

constexpr std::string_view tensorflow_memory =
    "memory is planned before the first step, no TensorFlow allocator exists here";
constexpr std::string_view same_result = "it chose between TensorFlow forms of equal result";
constexpr std::string_view no_tracker =
    "a step's kernels run in a planned order, and nothing tracks them one by one";
constexpr std::string_view no_xla =
    "there is no XLA here; operations are fused as --fusion says, and the step is planned as a "
    "whole";
constexpr std::string_view gpu_threads =
    "one thread issues a device's work here, no pool of launching threads exists";

constexpr Flag runtime_rows[] = {
    {"gpu_thread_mode", text, "gpu_private", accepted, gpu_threads,
     "how TensorFlow shares the threads that launch GPU work"},
    {"per_gpu_thread_count", integer, "0", accepted, gpu_threads,
     "threads that launch work of one GPU", at_least(0)},
    {"timestamped_allocator", boolean, "False", accepted, tensorflow_memory,
     "detail of TensorFlow's allocator"},
    {"gpu_kt_max_interval", integer, "0", accepted, no_tracker,
     "operations between events of TensorFlow's kernel tracker"},
    {"gpu_kt_max_bytes", long_integer, "0", accepted, no_tracker,
     "bytes between events of TensorFlow's kernel tracker"},
    {"gpu_kt_max_pending", integer, "0", accepted, no_tracker,
     "open events of TensorFlow's kernel tracker"},
    {"use_tf_layers", boolean, "True", accepted,
     "there is one implementation of each layer (average pools stay average pools)",
     "which Python layer code builds the network"},
    {"use_python32_barrier", boolean, "False", accepted, "there is no Python here",
     "which Python barrier the input stage uses"},
    {"force_gpu_compatible", boolean, "False", accepted,
     "host memory that a GPU copies from or to is page-locked in any case",
     "make all host tensors pinned"},
    {"xla", boolean, "False", accepted, no_xla, "let XLA compile clusters of operations"},
    {"xla_compile", boolean, "False", accepted, no_xla, "let XLA compile the step"},
    {.name = "enable_optimizations",
     .help = "rewrite the graph before running it",
     .member = &at<&Config::graph, &GraphOptions::optimize>},
    {.name = "rewriter_config",
     .support = accepted,
     .note = "TensorFlow's graph optimiser does not run here; the header shows the text",
     .help = "settings of TensorFlow's graph optimiser, shown in the header",
     .member = &at<&Config::report, &ReportOptions::rewriter_config>},
    {"single_l2_loss_op", boolean, "False", accepted, same_result,
     "compute weight decay over one long tensor"},
    {"use_resource_vars", boolean, "False", accepted, same_result,
     "which kind of TensorFlow variable to use"},
    {"compute_lr_on_cpu", boolean, "False", accepted,
     "the learning rate is always computed on the host",
     "where TensorFlow computes the learning rate"},
    {"sparse_to_dense_grads", boolean, "False", accepted, "no network here has sparse gradients",
     "turn sparse gradients into dense ones"},
    {"trt_mode",
     text,
     "",
     rejected,
     "there is no TensorRT here; leave it out: --forward_only folds batch norms into convolutions "
     "and packs weights before timing, and --use_fp16 computes in 16 bits; there are no 8-bit "
     "kernels",
     "precision of TensorRT",
     {},
     "FP32|FP16|INT8|"},
    {"trt_max_workspace_size_bytes", long_integer, "4294967296", accepted,
     "there is no TensorRT here; each kernel has the workspace that --print_plan shows",
     "workspace of TensorRT", at_least(0)},
};

}  // namespace

std::vector<FlagGroup> runtime_flags() {
  return {{"runtime", "TensorFlow's machinery", runtime_rows}};
}

}  // namespace cnn::bench
