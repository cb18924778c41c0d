#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

using enum Treatment;
using enum Type;

constexpr std::string_view tensorflow_memory =
    "memory is planned before the first step, no TensorFlow allocator exists here";
constexpr std::string_view same_result = "it chose between TensorFlow forms of equal result";
constexpr std::string_view gpu_threads =
    "one thread issues a device's work here, no pool of launching threads exists";

constexpr Flag runtime_rows[] = {
    {"gpu_thread_mode", text, "gpu_private", accepted, gpu_threads,
     "how TensorFlow shares the threads that launch GPU work"},
    {"per_gpu_thread_count", integer, "0", accepted, gpu_threads,
     "threads that launch work of one GPU", at_least(0)},
    {"timestamped_allocator", boolean, "False", accepted, tensorflow_memory,
     "detail of TensorFlow's allocator"},
    {"gpu_kt_max_interval", integer, "0", accepted, tensorflow_memory,
     "operations between events of TensorFlow's kernel tracker"},
    {"gpu_kt_max_bytes", long_integer, "0", accepted, tensorflow_memory,
     "bytes between events of TensorFlow's kernel tracker"},
    {"gpu_kt_max_pending", integer, "0", accepted, tensorflow_memory,
     "open events of TensorFlow's kernel tracker"},
    {"use_tf_layers", boolean, "True", accepted,
     "there is one implementation of each layer (average pools stay average pools)",
     "which Python layer code builds the network"},
    {"use_python32_barrier", boolean, "False", accepted, "there is no Python here",
     "which Python barrier the input stage uses"},
    {"force_gpu_compatible", boolean, "False", accepted,
     "the memory that a device copies from is always of the fast kind",
     "make all host tensors pinned"},
    {"xla", boolean, "False", accepted,
     "there is no XLA here; the whole step is planned ahead anyway",
     "let XLA compile clusters of operations"},
    {"xla_compile", boolean, "False", accepted,
     "there is no XLA here; the whole step is planned ahead anyway", "let XLA compile the step"},
    {.name = "enable_optimizations",
     .help = "rewrite the graph before running it",
     .member = &at<&Config::graph, &GraphOptions::optimize>},
    {.name = "rewriter_config",
     .treatment = accepted,
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
     "there is no TensorRT here; use --forward_only with --use_fp16",
     "precision of TensorRT",
     {},
     "FP32|FP16|INT8|"},
    {"trt_max_workspace_size_bytes", long_integer, "4294967296", accepted,
     "there is no TensorRT here", "workspace of TensorRT", at_least(0)},
};

}  // namespace

std::vector<FlagGroup> runtime_flags() {
  return {{"runtime", "TensorFlow's machinery", runtime_rows}};
}

}  // namespace cnn::bench
