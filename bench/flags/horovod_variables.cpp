#include "bench/flags/horovod_variables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using Variable = std::pair<std::string, std::string>;

// The variables act on the configuration; command line flags override them.
struct Command {
  std::span<const Setting> settings;
  Config& config;

  bool gives(std::string_view flag) const {
    return std::ranges::any_of(settings, [flag](const Setting& setting) {
      return setting.given && setting.flag->name == flag;
    });
  }
};

std::int64_t number_in(const Variable& variable) {
  const std::string& text = variable.second;
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  check(error == std::errc() && stop == text.data() + text.size() && number >= 0,
        fmt::format("{}={}: it is a number from 0 on", variable.first, text));
  return number;
}

// The functions below return the flags that they set in command line syntax, or an empty text if
// the value changes nothing.

// The variable limits a bucket in bytes; 0 puts every gradient in a separate bucket.
std::string set_fusion(const Variable& variable, const Command& command) {
  constexpr std::int64_t mib = std::int64_t{1} << 20U, kib = 1024;
  const std::int64_t bytes = std::min(number_in(variable), std::int64_t{1} << 40U);
  CommFlags& comm = command.config.comm;
  comm.bucket_mb = static_cast<int>(divide_up(bytes, mib));
  std::string set = fmt::format("--comm_bucket_mb={}", comm.bucket_mb);
  const auto limit = [&](std::string_view flag, int& kilobytes) {
    if (bytes / kib < kilobytes && !command.gives(flag)) {
      kilobytes = static_cast<int>(bytes / kib);
      set += fmt::format(" --{}={}", flag, kilobytes);
    }
  };
  limit("comm_first_bucket_kb", comm.first_bucket_kb);
  limit("comm_last_bucket_kb", comm.last_bucket_kb);
  return set;
}

// Horovod accepts DYNAMIC for a timeline that the script starts later, which has no counterpart
// here.
std::string set_timeline(const Variable& variable, const Command& command) {
  if (variable.second.empty() || variable.second == "DYNAMIC") {
    return {};
  }
  check(variable.second.find("://") == std::string::npos,
        fmt::format("{}={}: files are written through this machine's file system only; give a path "
                    "on it",
                    variable.first, variable.second));
  command.config.report.trace_file = variable.second;
  return fmt::format("--trace_file={}", variable.second);
}

std::string set_autotune(const Variable& variable, const Command& command) {
  if (number_in(variable) == 0) {
    return {};
  }
  command.config.comm.calibrate = LinkCalibration::force;
  return "--comm_calibrate=force";
}

// Both Horovod and the flag use 0 for never.
std::string set_stall_warning(const Variable& variable, const Command& command) {
  command.config.comm.stall_warn_s = static_cast<double>(number_in(variable));
  return fmt::format("--comm_stall_warn_s={}", command.config.comm.stall_warn_s);
}

std::string disable_stall_warning(const Variable& variable, const Command& command) {
  if (number_in(variable) == 0) {
    return {};
  }
  command.config.comm.stall_warn_s = 0;
  return "--comm_stall_warn_s=0";
}

std::string set_start_timeout(const Variable& variable, const Command& command) {
  const std::int64_t seconds = number_in(variable);
  if (seconds == 0) {
    return {};
  }
  command.config.comm.start_timeout_s = static_cast<double>(seconds);
  return fmt::format("--comm_start_timeout_s={}", command.config.comm.start_timeout_s);
}

std::string set_stall_shutdown(const Variable& variable, const Command& command) {
  const std::int64_t seconds = number_in(variable);
  if (seconds == 0) {
    return {};
  }
  command.config.comm.stall_abort_s = static_cast<double>(seconds);
  return fmt::format("--comm_stall_abort_s={}", command.config.comm.stall_abort_s);
}

constexpr std::string_view no_cycles = "a bucket leaves when its last gradient is there";
constexpr std::string_view levels =
    "the fastest of all ways is taken, with levels and without; see --comm_print_plan";

constexpr std::string_view prefix = "HOROVOD_";

// Describes one of Horovod's variables, without its prefix.
struct VariableRow {
  std::string_view name;
  std::string_view flag;  // overrides the variable; empty: no equivalent flag
  std::string (*set)(const Variable& variable, const Command& command) = nullptr;
  std::string_view why = {};        // why the variable has no effect, if `set` sets nothing
  std::string_view yields_to = {};  // a variable that overrides this one unless it is 0
};
constexpr std::array<VariableRow, 13> horovod_rows{
    {{.name = "FUSION_THRESHOLD", .flag = "comm_bucket_mb", .set = set_fusion},
     {.name = "TIMELINE",
      .flag = "trace_file",
      .set = set_timeline,
      .why = "it names no file for a trace"},
     {.name = "AUTOTUNE",
      .flag = "comm_calibrate",
      .set = set_autotune,
      .why = "0 leaves --comm_calibrate as it is"},
     {.name = "CYCLE_TIME", .flag = {}, .why = no_cycles},
     {.name = "TIMELINE_MARK_CYCLES", .flag = {}, .why = no_cycles},
     {.name = "CACHE_CAPACITY", .flag = {}, .why = "ranks negotiate nothing that could be kept"},
     {.name = "AUTOTUNE_LOG", .flag = {}, .why = "see --comm_print_plan"},
     {.name = "HIERARCHICAL_ALLREDUCE", .flag = {}, .why = levels},
     {.name = "TORUS_ALLREDUCE", .flag = {}, .why = levels},
     {.name = "STALL_CHECK_DISABLE",
      .flag = "comm_stall_warn_s",
      .set = disable_stall_warning,
      .why = "0 leaves --comm_stall_warn_s as it is"},
     {.name = "START_TIMEOUT",
      .flag = "comm_start_timeout_s",
      .set = set_start_timeout,
      .why = "0 leaves --comm_start_timeout_s as it is"},
     {.name = "STALL_CHECK_TIME_SECONDS",
      .flag = "comm_stall_warn_s",
      .set = set_stall_warning,
      .yields_to = "HOROVOD_STALL_CHECK_DISABLE"},
     {.name = "STALL_SHUTDOWN_TIME_SECONDS",
      .flag = "comm_stall_abort_s",
      .set = set_stall_shutdown,
      .why = "no rank waits for ever; --comm_stall_abort_s says how long"}}};

bool is_on(std::string_view name, const EnvironmentVariables& variables) {
  return std::ranges::any_of(variables, [name](const Variable& variable) {
    return variable.first == name && number_in(variable) != 0;
  });
}

// Returns what overrides the variable; empty if nothing does.
std::string what_goes_before(const VariableRow& row, const EnvironmentVariables& variables,
                             const Command& command) {
  if (row.set == nullptr) {
    return std::string(row.why);
  }
  if (command.gives(row.flag)) {
    return fmt::format("--{} is given", row.flag);
  }
  return is_on(row.yields_to, variables) ? fmt::format("{} is set", row.yields_to) : "";
}

std::string apply_row(const VariableRow& row, const Variable& variable,
                      const EnvironmentVariables& variables, const Command& command) {
  std::string why = what_goes_before(row, variables, command);
  if (why.empty()) {
    const std::string set = row.set(variable, command);
    if (!set.empty()) {
      return fmt::format("{}={} sets {}", variable.first, variable.second, set);
    }
    why = row.why;
  }
  return fmt::format("{}={} has no effect: {}", variable.first, variable.second, why);
}

}  // namespace

std::vector<std::string> apply_horovod_variables(const EnvironmentVariables& variables,
                                                 std::span<const Setting> settings,
                                                 Config& config) {
  const Command command{settings, config};
  std::vector<std::string> lines;
  for (const Variable& variable : variables) {
    for (const VariableRow& row : horovod_rows) {
      if (variable.first.starts_with(prefix) &&
          std::string_view(variable.first).substr(prefix.size()) == row.name) {
        lines.push_back(apply_row(row, variable, variables, command));
      }
    }
  }
  return lines;
}

}  // namespace cnn::bench
