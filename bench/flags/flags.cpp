#include "bench/flags/flags.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>

#include "bench/flags/cluster_flags.h"
#include "bench/flags/flag_rules.h"
#include "bench/flags/flag_syntax.h"
#include "bench/flags/horovod_variables.h"
#include "bench/flags/lms_policy.h"
#include "bench/flags/number_text.h"
#include "data/catalog.h"
#include "runtime/error.h"

namespace cnn::bench {

namespace {

// Removes and returns the word of --help=WORD; --help alone is a switch.
std::optional<std::string> take_help_topic(Arguments& arguments) {
  std::optional<std::string> topic;
  for (auto& [name, text] : arguments.flags) {
    if (name == "help" && !read_switch(text)) {
      topic = std::exchange(text, "true");
    }
  }
  return topic;
}

// Parses each flag once; the last of several counts. Older names become the current ones with a
// notice.
void read_values(Arguments arguments, CommandLine& line) {
  const std::optional<std::string> help_topic = take_help_topic(arguments);
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
  line.config.help.topic = help_topic;
}

// A switch that is rejected when on may be off: scripts state that explicitly.
void treat(const Flag& flag, const Plain& value, CommandLine& line) {
  const std::string told = fmt::format("--{}={}", flag.name, to_text(value));
  switch (flag.support) {
    case FlagSupport::honoured:
      return;
    case FlagSupport::accepted:
      line.notices.push_back(fmt::format("{} has no effect: {}", told, flag.note));
      return;
    case FlagSupport::rejected:
      check(flag.usual == "None" && value == Plain(false),
            fmt::format("{} is not supported: {}", told, flag.note));
      return;
  }
}

bool is_of_older_releases(const Flag& flag) {
  return std::ranges::any_of(flag_groups(), [&](const FlagGroup& group) {
    return group.name == "legacy" &&
           std::ranges::find(group.flags, flag.name, &Flag::name) != group.flags.end();
  });
}

void treat_all(CommandLine& line) {
  const std::vector<Setting>& defaults = default_settings();
  for (std::size_t i = 0; i < defaults.size(); ++i) {
    const Setting& setting = line.settings[i];
    if (is_cluster_flag(setting.flag->name)) {
      continue;  // refuse_cluster_flags checks all of them together
    }
    if (setting.value != defaults[i].value) {
      treat(*setting.flag, setting.value, line);
    } else if (setting.given && !setting.flag->note.empty() &&
               is_of_older_releases(*setting.flag)) {
      line.notices.push_back(
          fmt::format("--{} is a flag of older releases, and this is its "
                      "default; for another: {}",
                      setting.flag->name, setting.flag->note));
    }
  }
}

// Rejects addresses such as gs://bucket/folder, which upstream accepts; this program would create a
// folder of that name.
void check_paths(std::span<const Setting> settings) {
  constexpr std::array<std::string_view, 2> free_texts{"benchmark_test_id", "rewriter_config"};
  for (const Setting& setting : settings) {
    const auto* const text = std::get_if<std::string>(&setting.value);
    if (text == nullptr || std::ranges::find(free_texts, setting.flag->name) != free_texts.end()) {
      continue;
    }
    check(text->find("://") == std::string::npos,
          fmt::format("--{}={}: files are read and written through this machine's file system "
                      "only; mount or copy what is there, and give its path",
                      setting.flag->name, *text));
  }
}

// Explains a switch with its value as a separate word, which the first releases accepted in old
// scripts.
std::string switch_hint(const Arguments& arguments) {
  if (arguments.flags.empty() || !read_switch(arguments.positional.front())) {
    return {};
  }
  const std::string& name = arguments.flags.back().first;
  return type_name(*find_flag(name)) != "bool"
             ? std::string()
             : fmt::format("; a switch takes its value by an equals sign: --{}={}", name,
                           arguments.positional.front());
}

bool is_given(CommandLine& line, std::string_view name) {
  return find_setting(line.settings, name).given;
}

std::string missing_gpu(const RunEnvironment& environment) {
  if (!environment.gpu_backend) {
    return "this build has no CUDA backend";
  }
  return environment.missing_gpu == nullptr ? std::string() : environment.missing_gpu();
}

void settle_device(CommandLine& line, const RunEnvironment& environment) {
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
  const std::string missing = missing_gpu(environment);
  if (is_given(line, "device")) {
    check(missing.empty(), fmt::format("--device=gpu: {}; use --device=cpu", missing));
    return;
  }
  device = missing.empty() ? DeviceKind::gpu : DeviceKind::cpu;
  if (environment.gpu_backend && !missing.empty()) {
    line.notices.push_back(fmt::format("{}: computing on the CPU", missing));
  }
}

// An empty value, such as an unset shell variable, is not a path: it selects synthetic data, as in
// upstream.
void tell_empty_data_dir(CommandLine& line) {
  if (is_given(line, "data_dir") && !line.config.data.dir) {
    line.notices.emplace_back("--data_dir= names no folder: the images are synthetic");
  }
}

// The name of a missing folder need not tell the intended data set.
void check_guessed_folder(const DataOptions& data) {
  const std::string dir = data.dir.value_or("");
  const auto names_it = [&](const data::Row& row) {
    return dir.find(row.in_path) != std::string::npos;
  };
  std::error_code ignored;
  const bool known = data.set != nullptr || std::ranges::any_of(data::catalog(), names_it);
  check(dir.empty() || known || std::filesystem::exists(dir, ignored),
        fmt::format("--data_dir={}: there is no such folder", dir));
}

void settle_data_set(Config& config) {
  check_guessed_folder(config.data);
  const data::Row& row = config.data.row();
  check(data::can_run(row),
        fmt::format("--data_name={0}: this program trains image classifiers, and {0} is a data set "
                    "for {1}; use {2}",
                    row.name, row.task, data::names(data::can_run)));
  config.data.set = &row;
}

// --use_fp16 means --precision=fp16. Another type instead would be another measurement, so a device
// without it is an error.
void settle_precision(CommandLine& line, const RunEnvironment& environment) {
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
  const Precision alternative = environment.bf16 ? Precision::bf16 : Precision::fp32;
  check(!on_cpu || precision != Precision::fp16,
        fmt::format("{} needs a GPU (--device=gpu); on this CPU use --precision={}",
                    half ? "--use_fp16" : "--precision=fp16", word_of(alternative)));
  check(!on_cpu || precision != Precision::bf16 || environment.bf16,
        "--precision=bf16 is not available on this machine; use --precision=fp32");
}

// --use_nccl is older than --comm_backend.
void settle_exchange(CommandLine& line) {
  CommFlags& comm = line.config.comm;
  if (comm.use_nccl) {
    return;
  }
  check(comm.backend != CommBackend::nccl,
        "--nouse_nccl and --comm_backend=nccl contradict each other; drop one of them");
  if (comm.backend == CommBackend::automatic) {
    comm.backend = CommBackend::own;
    line.notices.emplace_back("--nouse_nccl is an older form of --comm_backend=ring");
  }
}

void settle_lms(CommandLine& line) {
  const auto given = [&](std::string_view name) { return is_given(line, name); };
  line.config.lms.tflms1_is_given = std::ranges::any_of(tflms1_flags, given);
  line.config.lms.tflms2_is_given = std::ranges::any_of(tflms2_flags, given);
}

// Replaces requested values by effective ones.
void settle(CommandLine& line, const RunEnvironment& environment) {
  line.config.comm.launched = environment.launched;
  const Config request = line.config;
  if (line.config.variable_update == VariableUpdate::ddl && !line.config.comm.ddl_options) {
    line.config.comm.ddl_options = environment.ddl_options;
  }
  if (line.config.variable_update == VariableUpdate::horovod) {
    for (std::string& notice :
         apply_horovod_variables(environment.horovod, line.settings, line.config)) {
      line.notices.push_back(std::move(notice));
    }
  }
  if (line.config.comm.algorithm) {
    check(!line.config.comm.spec,
          "--comm_algo is another name of --all_reduce_spec; drop one of them");
    line.config.comm.spec = line.config.comm.algorithm;
  }
  settle_device(line, environment);
  tell_empty_data_dir(line);
  settle_data_set(line.config);
  settle_precision(line, environment);
  settle_exchange(line);
  settle_lms(line);
  for (Setting& setting : line.settings) {
    const Member* member = setting.flag->member;
    if (member != nullptr && member->load(line.config) != member->load(request)) {
      setting.value = member->load(line.config);
    }
  }
}

}  // namespace

CommandLine parse_flags(std::span<const std::string> words, const RunEnvironment& environment) {
  const Arguments arguments = read_arguments(expand_flag_files(words));
  CommandLine line{.settings = default_settings()};
  read_values(arguments, line);
  if (wants_help(line.config) || wants_listing(line.config)) {
    return line;
  }
  if (!arguments.positional.empty()) {
    throw Error("Received unknown positional arguments: " + quoted_list(arguments.positional) +
                switch_hint(arguments));
  }
  check_paths(line.settings);
  treat_all(line);
  refuse_cluster_flags(line.settings, arguments, environment.program.value_or("cnn_benchmarks"),
                       environment.launched);
  settle(line, environment);
  check_rules(line.config);
  for (std::string& notice : idle_flags(line.config)) {
    line.notices.push_back(std::move(notice));
  }
  return line;
}

bool wants_help(const Config& config) {
  return config.help.usual || config.help.brief || config.help.full ||
         config.help.format != HelpFormat::text;
}

bool wants_listing(const Config& config) { return config.help.version || config.help.list_models; }

}  // namespace cnn::bench
