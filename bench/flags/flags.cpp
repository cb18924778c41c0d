#include "bench/flags/flags.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cxxopts.hpp>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "bench/flags/flag_rules.h"
#include "bench/flags/flag_syntax.h"
#include "bench/flags/number_text.h"
#include "runtime/error.h"

namespace cnn::bench {

namespace {

cxxopts::Options option_table() {
  cxxopts::Options options("cnn_benchmarks");
  for (const FlagGroup& group : flag_groups()) {
    auto add = options.add_options(std::string(group.name));
    for (const Flag& flag : group.flags) {
      if (flag.renamed_to.empty()) {
        add(std::string(flag.name), std::string(flag.help), cxxopts::value<std::string>());
      }
    }
  }
  return options;
}

// Older names become today's; each gets one notice.
std::vector<std::string> today(const Arguments& arguments, CommandLine& line) {
  std::vector<std::string> words;
  for (const auto& [name, value] : arguments.flags) {
    const Flag& flag = *find_flag(name);
    const std::string now(flag.renamed_to.empty() ? flag.name : flag.renamed_to);
    if (!flag.renamed_to.empty()) {
      line.notices.push_back(fmt::format("--{} is an older name of --{}", name, now));
    }
    if (std::ranges::find(line.given, now) == line.given.end()) {
      line.given.push_back(now);
    }
    words.push_back(fmt::format("--{}={}", now, value));
  }
  return words;
}

void fill(std::span<const std::string> words, CommandLine& line) {
  std::vector<const char*> argv{"cnn_benchmarks"};
  for (const std::string& word : words) {
    argv.push_back(word.c_str());
  }
  try {
    cxxopts::Options options = option_table();
    const auto parsed = options.parse(static_cast<int>(argv.size()), argv.data());
    for (const std::string& name : line.given) {
      assign(*find_flag(name), parsed[name].as<std::string>(), line.config);
    }
  } catch (const cxxopts::exceptions::exception& problem) {
    throw Error(fmt::format("FATAL Flags parsing error: {}", problem.what()));
  }
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
  const Config defaults;
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      const Plain value = plain_value(flag, line.config);
      if (flag.renamed_to.empty() && value != plain_value(flag, defaults)) {
        treat(flag, value, line);
      }
    }
  }
}

bool is_given(const CommandLine& line, std::string_view name) {
  return std::ranges::find(line.given, name) != line.given.end();
}

void settle_device(CommandLine& line, const Abilities& abilities) {
  std::string& device = line.config.device;
  if (line.config.simulate) {
    const std::string told = fmt::format("--simulate={}", *line.config.simulate);
    if (!abilities.simulates) {
      throw Error(told + ": this build has no CUDA backend, so it cannot plan for a GPU");
    }
    if (is_given(line, "device") && (device == "cpu" || device == "CPU")) {
      throw Error(told + " plans for a GPU; drop --device=" + device);
    }
    device = "gpu";
    return;
  }
  if (!is_given(line, "device")) {
    device = abilities.cuda ? "gpu" : "cpu";
    if (!abilities.gpu_missing.empty()) {
      line.notices.push_back(fmt::format("{}: computing on the CPU", abilities.gpu_missing));
    }
  }
  device = device == "gpu" || device == "GPU" ? "gpu" : "cpu";
  if (device == "gpu" && !abilities.cuda) {
    throw Error(fmt::format(
        "--device=gpu: {}; use --device=cpu",
        abilities.gpu_missing.empty() ? "this build has no CUDA backend" : abilities.gpu_missing));
  }
}

void settle_data_name(Config& config) {
  constexpr std::array known{"imagenet", "cifar10", "mnist", "tensors"};
  if (!config.data_name) {
    config.data_name = config.data_dir ? guess_data_name(*config.data_dir) : "imagenet";
  }
  if (std::ranges::find(known, *config.data_name) == known.end()) {
    throw Error(
        fmt::format("--data_name={}: there is no such data set here; use imagenet, cifar10, mnist "
                    "or tensors",
                    *config.data_name));
  }
}

void settle_precision(CommandLine& line, const Abilities& abilities) {
  Config& config = line.config;
  const bool on_cpu = config.device == "cpu";
  if (config.use_fp16) {
    const std::string half = on_cpu ? "bf16" : "fp16";
    if (is_given(line, "precision") && config.precision != half) {
      throw Error(
          fmt::format("--use_fp16 means --precision={} on a {}, but --precision={} was "
                      "given too; drop one of them",
                      half, on_cpu ? "CPU" : "GPU", config.precision));
    }
    if (on_cpu) {
      line.notices.emplace_back("--use_fp16 on a CPU computes in bf16");
    }
    config.precision = half;
  }
  const std::string_view alternative = abilities.bf16 ? "bf16" : "fp32";
  if (on_cpu && config.precision == "fp16") {
    throw Error(fmt::format("--precision=fp16 needs a GPU; use --precision={}", alternative));
  }
  if (on_cpu && config.precision == "bf16" && !abilities.bf16) {
    throw Error(
        "--precision=bf16 (also meant by --use_fp16 on a CPU) is not available on this machine; "
        "use --precision=fp32");
  }
}

std::string help_of(const Flag& flag) {
  constexpr std::size_t width = 98;
  constexpr std::string_view indent = "\n      ";
  const std::string usual = to_text(plain_value(flag, Config{}));
  std::string values(flag.choices.empty() ? type_name(flag) : flag.choices);
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

}  // namespace

CommandLine parse_flags(std::span<const std::string> words, const Abilities& abilities) {
  const Arguments arguments = read_arguments(expand_flag_files(words));
  CommandLine line;
  fill(today(arguments, line), line);
  if (wants_help(line.config)) {
    return line;
  }
  if (!arguments.positional.empty()) {
    throw Error("Received unknown positional arguments: " + quoted_list(arguments.positional));
  }
  treat_all(line);
  settle_device(line, abilities);
  settle_data_name(line.config);
  settle_precision(line, abilities);
  check_rules(line.config);
  for (std::string& notice : idle_flags(line.config)) {
    line.notices.push_back(std::move(notice));
  }
  return line;
}

bool wants_help(const Config& config) { return config.help || config.helpshort || config.helpfull; }

std::string help_text(const Config& config) {
  constexpr std::array first{"mode", "size", "report", "device", "data", "ours"};
  std::string text = "cnn_benchmarks: train convolutional networks and report images/sec\n";
  for (const FlagGroup& group : flag_groups()) {
    const bool brief = !config.helpfull && !config.help;
    if (brief && std::ranges::find(first, group.name) == first.end()) {
      continue;
    }
    std::string body;
    for (const Flag& flag : group.flags) {
      const bool acts = flag.treatment == Treatment::honoured && flag.renamed_to.empty();
      body += acts || config.helpfull ? help_of(flag) : "";
    }
    text += body.empty() ? "" : fmt::format("\n{}:\n{}", group.title, body);
  }
  return text;
}

std::string guess_data_name(const std::string& data_dir) {
  // The first four and their order are the original's.
  for (const std::string_view name : {"imagenet", "cifar10", "librispeech", "coco", "mnist"}) {
    if (data_dir.find(name) != std::string::npos) {
      return std::string(name);
    }
  }
  if (data_dir.ends_with(".safetensors")) {
    return "tensors";
  }
  throw Error(
      fmt::format("--data_dir={}: cannot tell which data set this is; add "
                  "--data_name=cifar10, mnist or tensors",
                  data_dir));
}

}  // namespace cnn::bench
