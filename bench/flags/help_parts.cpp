#include "bench/flags/help_parts.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cnn::bench {
namespace {

constexpr std::array<HelpEntry, 3> examples{
    {{"cnn_benchmarks --model=resnet50 --batch_size=32", "train on synthetic images"},
     {"cnn_benchmarks --model=resnet50 --batch_size=256 --lms --lms_limit=8000",
      "a step that does not fit into 8000 MB: swap tensors to the host, recompute others"},
     {"mpirun -np 4 cnn_benchmarks --model=resnet50 --variable_update=horovod",
      "four processes that sum their gradients"}}};

constexpr std::array<HelpEntry, 5> essentials{
    {{"What to run", "model data_name data_dir train_dir eval forward_only"},
     {"How much to run", "batch_size num_batches num_epochs image_size"},
     {"Where and how",
      "device num_gpus num_intra_threads precision variable_update optimizer init_learning_rate"},
     {"Memory and prediction", "lms lms_limit find_max_batch simulate"},
     {"Reports", "result_json html_report trace_file list_models"}}};

constexpr std::array<HelpEntry, 6> statuses{
    {{"0", "the run is complete, or --version or --list_models has answered"},
     {"1", "an error, told in one line on stderr; also after --help, as the original's"},
     {"3", "the run does not fit into the memory of the device or the host; less may fit"},
     {"4", "--comm_check=majority found a rank that computes differently"},
     {"75", "another rank failed or does not answer"},
     {"128+N", "the signal N ended the run; SIGINT and SIGTERM let the running step end first"}}};

constexpr std::array<HelpEntry, 9> variables{
    {{"CNN_MAX_CPU_ISA, ONEDNN_MAX_CPU_ISA",
      "the highest instruction set that kernels may use (see the first line of device: on stderr)"},
     {"OMP_NUM_THREADS", "threads that compute on the CPU; --num_intra_threads goes first"},
     {"OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY",
      "where set, OpenMP places the threads; else each has a processor of its own"},
     {"DDL_OPTIONS", "--ddl_options of --variable_update=ddl; the flag goes first"},
     {"HOROVOD_...",
      "settings of --variable_update=horovod; each that acts or cannot act is told on stderr"},
     {"TF_GPU_HOST_MEM_LIMIT_IN_MB", "the most host memory that --lms may take"},
     {"TF_LMS_SIMULATOR_MEM_RATIO", "--lms_mem_ratio of the policy tflms2; the flag goes first"},
     {"OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMI_RANK, PMI_SIZE, MV2_COMM_WORLD_RANK, "
      "MV2_COMM_WORLD_SIZE, PMIX_RANK",
      "set by mpirun, srun --mpi=pmix and the like: this process is one of several ranks"},
     {"SLURM_STEP_NUM_TASKS, SLURM_PROCID",
      "set by srun; several tasks without a variable of the line above are refused"}}};

}  // namespace

std::span<const HelpEntry> help_examples() { return examples; }
std::span<const HelpEntry> exit_statuses() { return statuses; }
std::span<const HelpEntry> environment_variables() { return variables; }
std::span<const HelpEntry> essential_flags() { return essentials; }

bool acts(const Flag& flag) {
  return flag.support == FlagSupport::honoured && meant_by(flag).support == FlagSupport::honoured;
}

std::string value_text(const Flag& flag) {
  const std::vector<std::string> choices = choices_of(flag);
  return choices.empty() ? std::string(type_name(flag))
                         : fmt::format("{}", fmt::join(choices, "|"));
}

std::string default_text(const Flag& flag) {
  const std::string usual = to_text(default_value(flag));
  return usual.empty() ? "''" : usual;
}

std::string description_of(const Flag& flag) {
  std::string words(flag.help);
  const std::string_view note = flag.note.empty() ? meant_by(flag).note : flag.note;
  if (!note.empty()) {
    const FlagSupport support = meant_by(flag).support;
    words += fmt::format(" [{}: {}]",
                         support == FlagSupport::accepted ? "no effect" : "not available", note);
  }
  return words;
}

}  // namespace cnn::bench
