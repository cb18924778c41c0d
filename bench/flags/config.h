#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cnn::bench {

// What the command line says: one member per flag, named like the flag, with the flag's default. An
// optional without a value means "not set". parse_flags (bench/flags/flags.h) fills it and is the
// only writer; after parsing, `device`, `data_name` and `precision` hold the values in force.
// Meanings and units stand once, in the help texts of the flag tables.
struct Config {
  // mode
  std::string model = "trivial";
  bool eval = false;
  bool forward_only = false;
  bool freeze_when_forward_only = false;

  // size
  int batch_size = 0;
  std::optional<int> num_batches;
  std::optional<double> num_epochs;
  std::optional<int> num_warmup_batches;

  // eval
  int eval_interval_secs = 0;
  std::optional<int> eval_during_training_every_n_steps;
  std::optional<double> eval_during_training_every_n_epochs;
  std::vector<std::string> eval_during_training_at_specified_steps;
  std::vector<std::string> eval_during_training_at_specified_epochs;
  int eval_batch_size = 0;
  std::optional<int> num_eval_batches;
  std::optional<double> num_eval_epochs;
  std::optional<double> stop_at_top_1_accuracy;
  bool collect_eval_results_async = false;

  // report
  bool print_training_accuracy = false;
  int display_every = 10;
  std::optional<double> display_perf_ewma;
  std::string loss_type_to_report = "total_loss";
  int summary_verbosity = 0;
  int save_summaries_steps = 0;
  std::optional<std::string> benchmark_log_dir;
  std::optional<std::string> benchmark_test_id;
  bool ml_perf_compliance_logging = false;

  // profile
  std::string trace_file;
  bool use_chrome_trace_format = true;
  std::optional<std::string> tfprof_file;
  std::optional<std::string> graph_file;
  std::optional<std::string> partitioned_graph_file_prefix;
  std::optional<std::string> debugger;

  // checkpoint
  int save_model_secs = 0;
  std::optional<int> save_model_steps;
  int max_ckpts_to_keep = 5;
  std::optional<std::string> train_dir;
  std::string eval_dir = "/tmp/tf_cnn_benchmarks/eval";
  std::optional<std::string> backbone_model_path;

  // input and data
  int batch_group_size = 1;
  std::optional<std::string> data_dir;
  std::optional<std::string> data_name;  // in force after parsing, never empty then
  std::string resize_method = "bilinear";
  bool distortions = false;
  bool use_datasets = true;
  std::string input_preprocessor = "default";
  bool datasets_repeat_cached_sample = false;
  bool ml_perf = false;
  bool datasets_use_prefetch = true;
  int datasets_prefetch_buffer_size = 1;
  std::optional<int> datasets_num_private_threads;
  bool datasets_use_caching = false;
  std::optional<int> datasets_parallel_interleave_cycle_length;
  bool datasets_sloppy_parallel_interleave = false;
  std::optional<int> datasets_parallel_interleave_prefetch;
  int multi_device_iterator_max_buffer_size = 1;
  bool fuse_decode_and_crop = true;
  bool distort_color_in_yiq = true;

  // device
  int num_gpus = 1;
  std::string gpu_indices;
  std::string local_parameter_device = "gpu";
  std::string device = "gpu";  // in force after parsing: "cpu" or "gpu"
  std::string data_format = "NCHW";

  // cpu
  std::optional<int> num_intra_threads;
  int num_inter_threads = 0;
  bool use_numa_affinity = false;
  bool mkl = false;
  int kmp_blocktime = 0;
  std::string kmp_affinity = "granularity=fine,verbose,compact,1,0";
  int kmp_settings = 1;

  // gpu
  std::optional<int> autotune_threshold;
  double gpu_memory_frac_for_testing = 0;
  std::optional<bool> use_unified_memory;
  bool winograd_nonfused = true;
  bool batchnorm_persistent = true;
  bool sync_on_finish = false;
  std::optional<bool> allow_growth;

  // fp16
  bool use_fp16 = false;
  std::optional<double> fp16_loss_scale;
  bool fp16_vars = false;
  bool fp16_enable_auto_loss_scale = false;
  int fp16_inc_loss_scale_every_n = 1000;

  // runtime: switches of TensorFlow's machinery
  std::string gpu_thread_mode = "gpu_private";
  int per_gpu_thread_count = 0;
  bool timestamped_allocator = false;
  int gpu_kt_max_interval = 0;
  std::int64_t gpu_kt_max_bytes = 0;
  int gpu_kt_max_pending = 0;
  bool use_tf_layers = true;
  bool use_python32_barrier = false;
  bool force_gpu_compatible = false;
  bool xla = false;
  bool xla_compile = false;
  bool enable_optimizations = true;
  std::optional<std::string> rewriter_config;
  bool single_l2_loss_op = false;
  bool use_resource_vars = false;
  bool compute_lr_on_cpu = false;
  bool sparse_to_dense_grads = false;
  std::string trt_mode;
  std::int64_t trt_max_workspace_size_bytes = 4294967296;

  // optim
  std::string optimizer = "sgd";
  std::optional<double> init_learning_rate;
  std::optional<std::string> piecewise_learning_rate_schedule;
  double num_epochs_per_decay = 0;
  double learning_rate_decay_factor = 0;
  double num_learning_rate_warmup_epochs = 0;
  double minimum_learning_rate = 0;
  std::optional<double> resnet_base_lr;
  double momentum = 0.9;
  double rmsprop_decay = 0.9;
  double rmsprop_momentum = 0.9;
  double rmsprop_epsilon = 1.0;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  std::optional<double> gradient_clip;
  double weight_decay = 4e-5;
  int tf_random_seed = 1234;

  // reduce
  std::string variable_update = "parameter_server";
  std::optional<std::string> all_reduce_spec;
  bool hierarchical_copy = false;
  std::string network_topology = "dgx1";
  int gradient_repacking = 0;
  bool compact_gradient_transfer = true;
  std::string variable_consistency = "strong";
  bool staged_vars = false;
  int agg_small_grads_max_bytes = 0;
  int agg_small_grads_max_group = 10;
  int allreduce_merge_scope = 1;

  // dist
  std::string job_name;
  std::string ps_hosts;
  std::string worker_hosts;
  std::optional<std::string> controller_host;
  int task_index = 0;
  std::string server_protocol = "grpc";
  bool cross_replica_sync = true;
  std::string horovod_device;

  // lms, and what IBM's variant added
  bool lms = false;
  int lms_n_tensors = -1;
  int lms_lb = 1;
  int lms_swapout_threshold = -1;
  int lms_swapin_ahead = -1;
  int lms_swapin_groupby = -1;
  int lms_sync_mode = 0;
  std::string ddl_options;
  std::optional<int> image_size;

  // allreduce_bench and test: other programs of the original
  int iters_per_step = 5;
  std::string fake_input = "none";
  bool run_distributed_tests = false;
  bool full_tests = false;

  // legacy: names of older branches (learning_rate and cache_data share their successors' members)
  bool use_nccl = true;
  bool use_data_sets = false;
  bool use_multi_device_iterator = true;
  bool enable_layout_optimizer = false;
  std::optional<std::string> pretrain_dir;
  std::optional<std::string> result_storage;

  // absl
  bool help = false;
  bool helpshort = false;
  bool helpfull = false;
  bool helpxml = false;
  std::string flagfile;
  std::vector<std::string> undefok;
  int verbosity = -1;
  bool logtostderr = false;
  bool alsologtostderr = false;
  std::string stderrthreshold = "fatal";
  std::string log_dir;

  // ours
  std::string precision = "fp32";  // in force after parsing, --use_fp16 included
  bool dropout = true;
  bool tune = false;
  std::optional<std::string> plan_cache;
  std::optional<std::string> result_json;
  bool print_plan = false;
  std::string tensors_as = "imagenet";
  std::string synthetic_labels = "random";
  std::optional<std::string> simulate;
  std::string fusion = "auto";
  bool use_cuda_graph = true;
  bool deterministic = true;
};

}  // namespace cnn::bench
