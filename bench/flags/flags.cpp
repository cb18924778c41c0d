#include "bench/flags/flags.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <utility>

#include "bench/flags/flag_rules.h"
#include "bench/flags/flag_syntax.h"
#include "bench/flags/horovod_variables.h"
#include "bench/flags/lms_policy.h"
#include "bench/flags/number_text.h"
#include "data/catalog.h"
#include "runtime/error.h"

namespace cnn::bench {

namespace {

// Each flag is parsed once, the last of several counts. Older names become today's with a notice.
void read_values(const Arguments& arguments, CommandLine& line) {
  for (const auto& [name, text] : arguments.flags) {
    const Flag& flag = *find_flag(name);
    const Flag& meant = meant_by(flag);
    if (&meant != &flag) {
      line.notices.push_back(fmt::format("--{} is an older name of --{}", name, meant.name));
    }
    Setting& setting = find_setting(line.settings, meant.name);
    setting.value = parse_value(meant, text);
    setting.given = true;
  }
  line.config = config_of(line.settings);
}

void treat(const Flag& flag, const Plain& value, CommandLine& line) {
  const std::string told = fmt::format("--{}={}", flag.name, to_text(value));
  switch (flag.treatment) {
    case Treatment::honoured:
      return;
    case Treatment::accepted:
      line.notices.push_back(fmt::format("{} has no effect: {}", told, flag.note));
      return;
    case Treatment::rejected:
      throw Error(fmt::format("{} is not supported: {}", told, flag.note));
    case Treatment::later:
      throw Error(fmt::format("{} is not in this version: {}", told, flag.note));
  }
}

void treat_all(CommandLine& line) {
  for (const Setting& setting : line.settings) {
    if (setting.value != default_value(*setting.flag)) {
      treat(*setting.flag, setting.value, line);
    }
  }
}

bool is_given(CommandLine& line, std::string_view name) {
  return find_setting(line.settings, name).given;
}

std::string missing_gpu(const Abilities& abilities) {
  if (!abilities.gpu_backend) {
    return "this build has no CUDA backend";
  }
  return abilities.missing_gpu == nullptr ? std::string() : abilities.missing_gpu();
}

void settle_device(CommandLine& line, const Abilities& abilities) {
  DeviceKind& device = line.config.device;
  if (line.config.gpu.simulate) {
    const std::string told = fmt::format("--simulate={}", *line.config.gpu.simulate);
    if (is_given(line, "device") && device == DeviceKind::cpu) {
      throw Error(told + " plans for a GPU; drop --device=cpu");
    }
    device = DeviceKind::gpu;
    return;
  }
  if (is_given(line, "device") && device == DeviceKind::cpu) {
    return;
  }
  const std::string missing = missing_gpu(abilities);
  if (is_given(line, "device")) {
    check(missing.empty(), fmt::format("--device=gpu: {}; use --device=cpu", missing));
    return;
  }
  device = missing.empty() ? DeviceKind::gpu : DeviceKind::cpu;
  if (abilities.gpu_backend && !missing.empty()) {
    line.notices.push_back(fmt::format("{}: computing on the CPU", missing));
  }
}

void settle_data_set(Config& config) {
  const data::Row& row = config.data.row();
  check(data::can_run(row), fmt::format("--data_name={}: there is no such data set here; use {}",
                                        row.name, data::names(data::can_run)));
  config.data.set = &row;
}

// --use_fp16 is another word for --precision=fp16. Another type in its place would be another
// measurement, so that a device which lacks it is an error.
void settle_precision(CommandLine& line, const Abilities& abilities) {
  const bool on_cpu = line.config.device == DeviceKind::cpu;
  const bool half = line.config.precision.use_fp16;
  Precision& precision = line.config.precision.type;
  check(!half || !is_given(line, "precision") || precision == Precision::fp16,
        fmt::format("--use_fp16 means --precision=fp16, but --precision={} was given too; drop one "
                    "of them",
                    word_of(precision)));
  if (half) {
    precision = Precision::fp16;
  }
  const Precision alternative = abilities.bf16 ? Precision::bf16 : Precision::fp32;
  check(!on_cpu || precision != Precision::fp16,
        fmt::format("{} needs a GPU (--device=gpu); on this CPU use --precision={}",
                    half ? "--use_fp16" : "--precision=fp16", word_of(alternative)));
  check(!on_cpu || precision != Precision::bf16 || abilities.bf16,
        "--precision=bf16 is not available on this machine; use --precision=fp32");
}

void settle_lms(CommandLine& line) {
  const auto given = [&](std::string_view name) { return is_given(line, name); };
  line.config.lms.tflms1_is_given = std::ranges::any_of(tflms1_flags, given);
  line.config.lms.tflms2_is_given = std::ranges::any_of(tflms2_flags, given);
}

// The values in force replace those that were asked for.
void settle(CommandLine& line, const Abilities& abilities) {
  line.config.comm.launched = abilities.launched;
  const Config asked = line.config;
  if (line.config.variable_update == VariableUpdate::ddl && !line.config.comm.ddl_options) {
    line.config.comm.ddl_options = abilities.ddl_options;
  }
  if (line.config.variable_update == VariableUpdate::horovod) {
    for (std::string& notice :
         apply_horovod_variables(abilities.horovod, line.settings, line.config)) {
      line.notices.push_back(std::move(notice));
    }
  }
  if (line.config.comm.algorithm) {
    check(!line.config.comm.spec,
          "--comm_algo is another name of --all_reduce_spec; drop one of them");
    line.config.comm.spec = line.config.comm.algorithm;
  }
  settle_device(line, abilities);
  settle_data_set(line.config);
  settle_precision(line, abilities);
  settle_lms(line);
  for (Setting& setting : line.settings) {
    const Member* member = setting.flag->member;
    if (member != nullptr && member->load(line.config) != member->load(asked)) {
      setting.value = member->load(line.config);
    }
  }
}

std::string help_of(const Flag& flag) {
  constexpr std::size_t width = 98;
  constexpr std::string_view indent = "\n      ";
  const std::string usual = to_text(default_value(flag));
  const std::vector<std::string> choices = choices_of(flag);
  const std::string values =
      choices.empty() ? std::string(type_name(flag)) : fmt::format("{}", fmt::join(choices, "|"));
  std::string text =
      fmt::format("  --{} ({}; default {})", flag.name, values, usual.empty() ? "''" : usual);
  std::string words(flag.help);
  if (!flag.note.empty()) {
    const bool idle = flag.treatment == Treatment::accepted;
    words += fmt::format(" [{}: {}]", idle ? "no effect" : "not available", flag.note);
  }
  std::size_t column = width;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    if (column + (end - begin) + 1 > width) {
      text += indent;
      column = indent.size() - 1;
    } else {
      text += ' ';
      ++column;
    }
    text += words.substr(begin, end - begin);
    column += end - begin;
    begin = end + 1;
  }
  return text + "\n";
}

constexpr std::string_view help_ending = R"(
Exit status:
  0     the run is complete, or --version or --list_models has answered
  1     an error, told in one line on stderr; also after --help, as the original's
  3     the run does not fit into the memory of the device or the host; less may fit
  75    another rank failed or does not answer
  128+N the signal N ended the run; SIGINT and SIGTERM let the running step end first

Environment variables:
  CNN_MAX_CPU_ISA, ONEDNN_MAX_CPU_ISA
        the highest instruction set that kernels may use (see the first line of device: on stderr)
  OMP_NUM_THREADS
        threads that compute on the CPU; --num_intra_threads goes first
  OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY
        where set, OpenMP places the threads; else each has a processor of its own
  DDL_OPTIONS
        --ddl_options of --variable_update=ddl; the flag goes first
  HOROVOD_...
        settings of --variable_update=horovod; each that acts or cannot act is told on stderr
  TF_GPU_HOST_MEM_LIMIT_IN_MB
        the most host memory that --lms may take
  OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, PMI_RANK, PMI_SIZE, MV2_COMM_WORLD_RANK,
  MV2_COMM_WORLD_SIZE, PMIX_RANK
        set by mpirun and its like: this process is one of several ranks
)";

}  // namespace

CommandLine parse_flags(std::span<const std::string> words, const Abilities& abilities) {
  const Arguments arguments = read_arguments(expand_flag_files(words));
  CommandLine line{.settings = default_settings()};
  read_values(arguments, line);
  if (wants_help(line.config) || wants_listing(line.config)) {
    return line;
  }
  if (!arguments.positional.empty()) {
    throw Error("Received unknown positional arguments: " + quoted_list(arguments.positional));
  }
  treat_all(line);
  settle(line, abilities);
  check_rules(line.config);
  for (std::string& notice : idle_flags(line.config)) {
    line.notices.push_back(std::move(notice));
  }
  return line;
}

bool wants_help(const Config& config) {
  return config.help.usual || config.help.brief || config.help.full;
}

bool wants_listing(const Config& config) { return config.help.version || config.help.list_models; }

std::string help_text(const Config& config) {
  constexpr std::array first{"mode", "size", "report", "device", "data", "ours"};
  std::string text = "cnn_benchmarks: train convolutional networks and report images/sec\n";
  for (const FlagGroup& group : flag_groups()) {
    const bool brief = !config.help.full && !config.help.usual;
    if (brief && std::ranges::find(first, group.name) == first.end()) {
      continue;
    }
    std::string body;
    for (const Flag& flag : group.flags) {
      const bool acts = flag.treatment == Treatment::honoured && flag.renamed_to.empty();
      body += acts || config.help.full ? help_of(flag) : "";
    }
    text += body.empty() ? "" : fmt::format("\n{}:\n{}", group.title, body);
  }
  return text + std::string(help_ending);
}

}  // namespace cnn::bench
