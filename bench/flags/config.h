#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/step_list.h"
#include "bench/flags/words.h"
#include "data/catalog.h"
#include "layers/update_rule.h"
#include "lms/options.h"
#include "models/learning_rate.h"

namespace cnn::bench {

// The settings of the command line, by topic: one member for each effective flag, with the flag's
// default. An optional without a value means "not set". parse_flags (bench/flags/flags.h) fills the
// struct and is its only writer; after parsing, device, data set and precision are resolved. The
// rows of the flag tables define which flag fills which member, with meanings and units.

enum class DeviceKind : std::uint8_t { cpu, gpu };
enum class Precision : std::uint8_t { fp32, tf32, fp32_strict, fp16, bf16 };
enum class FusionChoice : std::uint8_t { automatic, none, bn, conv };
enum class LossType : std::uint8_t { base, total };
enum class SyntheticLabels : std::uint8_t { random, fixed };
enum class DataFormat : std::uint8_t { nhwc, nchw };
enum class VariableUpdate : std::uint8_t {
  parameter_server,
  replicated,
  independent,
  distributed_replicated,
  distributed_all_reduce,
  collective_all_reduce,
  horovod,
  ddl
};

enum class CommTransport : std::uint8_t { automatic, mpi };
enum class CommBackend : std::uint8_t { automatic, own, mpi, nccl };
enum class CommCheck : std::uint8_t { off, hash, exact, majority };
enum class VariableConsistency : std::uint8_t { strong, relaxed };
enum class LinkCalibration : std::uint8_t { automatic, off, force };
enum class HelpFormat : std::uint8_t { text, man, bash };
// Whether a plan may run another form of the step, whose sums are in another order.
enum class LmsVariants : std::uint8_t { same, any };
// Whether the largest variables lie on the host; automatic: where no plan fits otherwise.
enum class LmsVariables : std::uint8_t { automatic, off, on };
enum class GpuNetwork : std::uint8_t { dgx1, gcp_v100 };

template <>
inline constexpr auto words<DeviceKind> = std::to_array<Word<DeviceKind>>({{"cpu", DeviceKind::cpu},
                                                                           {"gpu", DeviceKind::gpu},
                                                                           {"CPU", DeviceKind::cpu},
                                                                           {"GPU",
                                                                            DeviceKind::gpu}});

template <>
inline constexpr auto words<Precision> =
    std::to_array<Word<Precision>>({{"fp32", Precision::fp32},
                                    {"tf32", Precision::tf32},
                                    {"fp32_strict", Precision::fp32_strict},
                                    {"fp16", Precision::fp16},
                                    {"bf16", Precision::bf16}});

template <>
inline constexpr auto words<FusionChoice> =
    std::to_array<Word<FusionChoice>>({{"auto", FusionChoice::automatic},
                                       {"none", FusionChoice::none},
                                       {"bn", FusionChoice::bn},
                                       {"conv", FusionChoice::conv}});

template <>
inline constexpr auto words<LossType> =
    std::to_array<Word<LossType>>({{"base_loss", LossType::base}, {"total_loss", LossType::total}});

template <>
inline constexpr auto words<SyntheticLabels> = std::to_array<Word<SyntheticLabels>>(
    {{"random", SyntheticLabels::random}, {"fixed", SyntheticLabels::fixed}});

template <>
inline constexpr auto words<DataFormat> =
    std::to_array<Word<DataFormat>>({{"NHWC", DataFormat::nhwc}, {"NCHW", DataFormat::nchw}});

template <>
inline constexpr auto words<VariableUpdate> = std::to_array<Word<VariableUpdate>>(
    {{"parameter_server", VariableUpdate::parameter_server},
     {"replicated", VariableUpdate::replicated},
     {"independent", VariableUpdate::independent},
     {"distributed_replicated", VariableUpdate::distributed_replicated},
     {"distributed_all_reduce", VariableUpdate::distributed_all_reduce},
     {"collective_all_reduce", VariableUpdate::collective_all_reduce},
     {"horovod", VariableUpdate::horovod},
     {"ddl", VariableUpdate::ddl}});

template <>
inline constexpr auto words<CommTransport> = std::to_array<Word<CommTransport>>(
    {{"auto", CommTransport::automatic}, {"mpi", CommTransport::mpi}});

template <>
inline constexpr auto words<CommBackend> =
    std::to_array<Word<CommBackend>>({{"auto", CommBackend::automatic},
                                      {"ring", CommBackend::own},
                                      {"mpi", CommBackend::mpi},
                                      {"nccl", CommBackend::nccl}});

template <>
inline constexpr auto words<allreduce::Order> =
    std::to_array<Word<allreduce::Order>>({{"fast", allreduce::Order::fast},
                                           {"rank", allreduce::Order::rank},
                                           {"tree", allreduce::Order::tree}});

template <>
inline constexpr auto words<allreduce::Wire> =
    std::to_array<Word<allreduce::Wire>>({{"fp32", allreduce::Wire::f32},
                                          {"bf16", allreduce::Wire::bf16},
                                          {"fp16", allreduce::Wire::f16}});

template <>
inline constexpr auto words<VariableConsistency> = std::to_array<Word<VariableConsistency>>(
    {{"strong", VariableConsistency::strong}, {"relaxed", VariableConsistency::relaxed}});

template <>
inline constexpr auto words<CommCheck> =
    std::to_array<Word<CommCheck>>({{"off", CommCheck::off},
                                    {"hash", CommCheck::hash},
                                    {"exact", CommCheck::exact},
                                    {"majority", CommCheck::majority}});
template <>
inline constexpr auto words<LinkCalibration> =
    std::to_array<Word<LinkCalibration>>({{"auto", LinkCalibration::automatic},
                                          {"off", LinkCalibration::off},
                                          {"force", LinkCalibration::force}});

template <>
inline constexpr auto words<GpuNetwork> = std::to_array<Word<GpuNetwork>>(
    {{"dgx1", GpuNetwork::dgx1}, {"gcp_v100", GpuNetwork::gcp_v100}});

template <>
inline constexpr auto words<HelpFormat> = std::to_array<Word<HelpFormat>>(
    {{"text", HelpFormat::text}, {"man", HelpFormat::man}, {"bash", HelpFormat::bash}});

using data::Preprocessor;
using data::ResizeChoice;

template <>
inline constexpr auto words<ResizeChoice> =
    std::to_array<Word<ResizeChoice>>({{"nearest", ResizeChoice::nearest},
                                       {"bilinear", ResizeChoice::bilinear},
                                       {"bicubic", ResizeChoice::bicubic},
                                       {"area", ResizeChoice::area},
                                       {"round_robin", ResizeChoice::round_robin}});

template <>
inline constexpr auto words<Preprocessor> = std::to_array<Word<Preprocessor>>(
    {{"default", Preprocessor::standard},
     {"official_models_imagenet", Preprocessor::official_models}});

template <>
inline constexpr auto words<LmsVariants> =
    std::to_array<Word<LmsVariants>>({{"same", LmsVariants::same}, {"any", LmsVariants::any}});

template <>
inline constexpr auto words<LmsVariables> = std::to_array<Word<LmsVariables>>(
    {{"auto", LmsVariables::automatic}, {"off", LmsVariables::off}, {"on", LmsVariables::on}});

using lms::Recomputation;
using lms::TriggerRule;

template <>
inline constexpr auto words<TriggerRule> = std::to_array<Word<TriggerRule>>(
    {{"chain_rule", TriggerRule::chain_rule}, {"direct_order", TriggerRule::direct_order}});

template <>
inline constexpr auto words<Recomputation> =
    std::to_array<Word<Recomputation>>({{"auto", Recomputation::automatic},
                                        {"off", Recomputation::off},
                                        {"cheap", Recomputation::cheap},
                                        {"full", Recomputation::full}});

// In how many slices along the batch a step computes; nothing: the planner decides.
struct BatchSlices {
  std::optional<int> count = 1;
};
// In how many slices along their rows a step computes images; nothing: the planner decides.
struct RowSlices {
  std::optional<int> count = 1;
};
// In how many slices of their inputs dense layers with weights on the host compute; nothing: the
// planner decides.
struct DenseSlices {
  std::optional<int> count = 1;
};
inline constexpr int max_slices = 1024;  // of each

struct ModelOptions {
  std::string name = "trivial";
  std::optional<int> image_size;
  bool dropout = true;
  bool auxiliary_head = false;
};

struct ModeOptions {
  bool eval = false;
  bool forward_only = false;
  bool freeze_when_forward_only = false;
};

// At most one of the two is set; 0 counts as not set.
struct LengthFlags {
  std::optional<int> batches;
  std::optional<double> epochs;
};

struct SizeOptions {
  int batch = 0;        // per device; 0 or less: the model's default
  int batch_group = 1;  // batches per fill of the input stage
  LengthFlags length;
  std::optional<double>
      min_time;  // seconds of timed steps, in place of a length; 0 counts as unset
  std::optional<int> warm_up_batches;
  std::optional<int> autotune_threshold;
};

struct EvalOptions {
  int interval_secs = 0;
  // During training, at most one of these:
  std::optional<int> every_n_steps;
  std::optional<double> every_n_epochs;
  std::vector<std::int64_t> at_steps;
  std::vector<double> at_epochs;
  int batch = 0;  // per device; 0 or less: as in training
  LengthFlags length;
  std::optional<double> stop_at_top_1_accuracy;
};

// TensorBoard event files.
struct SummaryOptions {
  int verbosity = 0;  // 0: none
  int every = 0;      // steps between summaries; 0: none
  std::string eval_dir = "/tmp/tf_cnn_benchmarks/eval";
};

struct ReportOptions {
  bool training_accuracy = false;
  int display_every = 10;
  std::optional<double> perf_ewma;
  LossType loss_type = LossType::total;
  std::optional<std::string> log_dir;
  std::optional<std::string> test_id;
  std::string trace_file;  // empty: none
  std::optional<std::string> result_json;
  std::optional<std::string> html_report, tfprof_file, graph_file, steps_csv;
  std::optional<std::string> hash_file, history;
  SummaryOptions summaries;
  int hash_steps = 1;  // hashes every step whose global number is a multiple
  std::optional<std::int64_t> check_finite_step;  // global number
  std::optional<std::string> take_turns;          // file through which programs take turns
  bool print_plan = false;
  bool measure_ceilings = true;
  // Settings that only appear in the header:
  DataFormat data_format = DataFormat::nchw;
  std::optional<std::string> rewriter_config;
  std::string horovod_device;  // empty: not set
};

struct CheckpointOptions {
  std::optional<std::string> train_dir;
  int save_secs = 0;
  std::optional<int> save_steps;
  int max_to_keep = 5;
};

struct DataOptions {
  std::optional<std::string> dir;  // not set: synthetic data
  const data::Row* set = nullptr;  // from --data_name; resolved after parsing, then never null
  bool distortions = false;
  bool use_prefetch = true;
  // For image files; see data::ImageOptions.
  ResizeChoice resize = ResizeChoice::bilinear;
  Preprocessor preprocessor = Preprocessor::standard;
  bool colours_in_yiq = true, ml_perf = false, decode_crop_only = true;
  bool skip_broken = false, cache = false, repeat_first = false;
  std::optional<std::string> class_list;
  std::optional<int> threads;  // reader threads; unset or 0: as many as the step leaves idle
  bool input_only = false;
  int ready_batches = 1;  // per device, beside the batch being filled and the one in use
  const data::Row* tensors_as = &data::find("imagenet");  // a data set with networks
  SyntheticLabels synthetic_labels = SyntheticLabels::random;

  // Returns the named data set, else the one that the folder's name implies. Throws Error if none
  // matches.
  const data::Row& row() const { return set != nullptr ? *set : data::guess(dir.value_or("")); }
};

struct CpuFlags {
  std::optional<int> intra_threads;
  bool winograd = true;
  bool numa_affinity = false;
};

struct GpuFlags {
  double memory_fraction = 0;  // 0: all
  bool graph = true;           // replay steps from a CUDA graph
  bool deterministic = true;
  bool sync_each_kernel = false;
  std::optional<bool> tune;  // unset: yes, on an existing device
  double tune_seconds = 60;  // time limit for tuning in one run
  std::optional<std::string> plan_cache;
  std::string indices;                  // see bench/flags/gpu_indices.h
  std::optional<std::string> simulate;  // the machine to simulate
  int ordinal = 0;  // index among the ranks of its host, which selects its device; not a flag
};

struct PrecisionOptions {
  Precision type = Precision::fp32;  // resolved after parsing, use_fp16 included
  bool use_fp16 = false;
  std::optional<double> loss_scale;
  bool automatic_loss_scale = false;
  int loss_scale_every_n = 1000;
};

struct OptimizerOptions {
  layers::Rule rule = layers::Rule::sgd;
  double momentum = 0.9;
  double rmsprop_decay = 0.9;
  double rmsprop_momentum = 0.9;
  double rmsprop_epsilon = 1.0;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  std::optional<double> gradient_clip;
  double weight_decay = 4e-5;
};

struct GraphOptions {
  bool optimize = true;
  FusionChoice fusion = FusionChoice::automatic;
};

// Large Model Support.
struct LmsFlags {
  bool enabled = false;
  std::optional<std::string> policy;  // not set: see policy_of() in bench/flags/lms_policy.h
  bool tflms1_is_given = false, tflms2_is_given = false;  // a flag of one policy only
  lms::Options options;               // without size_threshold, whose default depends on the policy
  std::optional<int> size_threshold;  // KB
  BatchSlices slices;
  RowSlices row_slices;
  DenseSlices dense_slices;
  LmsVariants variants = LmsVariants::same;
  LmsVariables variables = LmsVariables::automatic;
  int exclude = 0, limit = 0;       // MB of device memory
  double mem_ratio = 1;             // fraction of device memory to plan with
  std::optional<int> host_limit;    // MB
  std::optional<std::string> disk;  // folder for what the host has no room for
  bool simulate_only = false;
  std::optional<std::string> plan_file, plan_out, trace;  // paths
  bool verify = false;
  bool stats = false, stats_average = false;
  int stats_warmup_steps = 5;
  std::string output_dir = "./model_outputs";  // of both tables
  bool debug = false;
  int debug_level = 1;
  std::optional<int> device_memory_mb;    // of a CPU that acts as a device with its own memory
  std::vector<double> emulate_link_gbps;  // out, in, both together
};

// The flags of the gradient exchange between ranks.
struct CommFlags {
  CommTransport transport = CommTransport::automatic;
  CommBackend backend = CommBackend::automatic;
  bool use_nccl = true;                     // older form of `backend`
  std::optional<std::string> spec;          // see bench/flags/reduce_spec.h
  std::optional<std::string> algorithm;     // older form of `spec`
  std::optional<std::string> topology;      // "4x8", see parse_dims() in bench/flags/reduce_spec.h
  int rings = 0, chunk_kb = 0, window = 0;  // 0: the model decides
  CommCheck check = CommCheck::off;
  std::optional<std::string> ddl_options;  // see bench/flags/ddl_options.h
  bool hierarchical_copy = false;
  GpuNetwork network = GpuNetwork::dgx1;
  VariableConsistency consistency = VariableConsistency::strong;
  int repacking = 0;  // number of pieces of all gradients together; 0: off
  bool compact = true;
  int small_bytes = 0, small_group = 10;  // of gradients that are exchanged together; 0 bytes: off
  allreduce::Order order = allreduce::Order::fast;
  std::optional<allreduce::Wire> wire;  // not set: auto
  bool overlap = true;
  int bucket_mb = 8, first_bucket_kb = 1024, last_bucket_kb = 1024;
  bool print_plan = false;
  int dump_iter = 0;  // steps per reported window; 0: none
  LinkCalibration calibrate = LinkCalibration::automatic;
  std::optional<std::string> calibration_file;
  // Override measured or assumed values: 10^9 bytes per second, microseconds.
  std::optional<double> host_gbps, rank_gbps, numa_gbps, latency_us;
  std::vector<std::int64_t> numa_nodes;  // of the ranks, repeated; empty: detected nodes
  int heartbeat_ms = 250;
  double start_timeout_s = 30;
  double peer_timeout_s = 10, stall_warn_s = 60, stall_abort_s = 300;
  std::optional<std::string> fault;  // see bench/flags/fault_spec.h
  std::vector<std::int64_t> simulate_ranks;
  int simulate_ranks_per_host = 1;
  // Assumptions: the standard deviation of a rank's step, as a fraction of it, and the fraction by
  // which a concurrent exchange slows down computing.
  double simulate_ranks_jitter = 0.01, simulate_ranks_slowdown = 0.05;
  bool launched = false;  // by a launcher such as mpirun, as one of several processes
};

// Searches for the largest value that memory allows.
struct SearchFlags {
  bool batch = false, image_size = false;

  bool any() const { return batch || image_size; }
};

struct HelpFlags {
  bool usual = false;
  bool brief = false;
  bool full = false;
  std::optional<std::string> topic;  // a group of flags or a word in their help
  HelpFormat format = HelpFormat::text;
  bool version = false, list_models = false;
};

struct Config {
  ModelOptions model;
  ModeOptions mode;
  SizeOptions size;
  EvalOptions eval;
  ReportOptions report;
  CheckpointOptions checkpoint;
  DataOptions data;
  DeviceKind device = DeviceKind::gpu;  // resolved after parsing
  CpuFlags cpu;
  GpuFlags gpu;
  PrecisionOptions precision;
  models::LearningRateOptions rate;
  OptimizerOptions optimizer;
  GraphOptions graph;
  LmsFlags lms;
  SearchFlags search;
  CommFlags comm;
  VariableUpdate variable_update = VariableUpdate::parameter_server;
  int num_gpus = 1;  // devices of any kind
  int seed = 1234;
  HelpFlags help;
};

}  // namespace cnn::bench
