#include "bench/flags/horovod_variables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

using Variable = std::pair<std::string, std::string>;

std::int64_t number_in(const Variable& variable) {
  const std::string& text = variable.second;
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  check(error == std::errc() && stop == text.data() + text.size() && number >= 0,
        fmt::format("{}={}: it is a number from 0 on", variable.first, text));
  return number;
}

// Bytes; 0: each gradient by itself.
std::string set_fusion(const Variable& variable, Config& config) {
  constexpr std::int64_t mib = std::int64_t{1} << 20U, kib = 1024;
  const std::int64_t bytes = std::min(number_in(variable), std::int64_t{1} << 40U);
  const auto smaller = [&](int kb) {
    return static_cast<int>(std::min<std::int64_t>(kb, bytes / kib));
  };
  config.comm.bucket_mb = static_cast<int>((bytes + mib - 1) / mib);
  config.comm.first_bucket_kb = smaller(config.comm.first_bucket_kb);
  config.comm.last_bucket_kb = smaller(config.comm.last_bucket_kb);
  return fmt::format("--comm_bucket_mb={}", config.comm.bucket_mb);
}

std::string set_timeline(const Variable& variable, Config& config) {
  config.report.trace_file = variable.second;
  return fmt::format("--trace_file={}", variable.second);
}

std::string set_autotune(const Variable& variable, Config& config) {
  if (number_in(variable) == 0) {
    return {};
  }
  config.comm.calibrate = LinkCalibration::force;
  return "--comm_calibrate=force";
}

// Horovod's 0 is never.
std::string set_stall_warning(const Variable& variable, Config& config) {
  config.comm.stall_warn_s = static_cast<double>(number_in(variable));
  return fmt::format("--comm_stall_warn_s={}", config.comm.stall_warn_s);
}

std::string disable_stall_warning(const Variable& variable, Config& config) {
  if (number_in(variable) == 0) {
    return {};
  }
  config.comm.stall_warn_s = 0;
  return "--comm_stall_warn_s=0";
}

std::string set_start_timeout(const Variable& variable, Config& config) {
  const std::int64_t seconds = number_in(variable);
  if (seconds == 0) {
    return {};
  }
  config.comm.start_timeout_s = static_cast<double>(seconds);
  return fmt::format("--comm_start_timeout_s={}", config.comm.start_timeout_s);
}

std::string set_stall_shutdown(const Variable& variable, Config& config) {
  const std::int64_t seconds = number_in(variable);
  if (seconds == 0) {
    return {};
  }
  config.comm.stall_abort_s = static_cast<double>(seconds);
  return fmt::format("--comm_stall_abort_s={}", config.comm.stall_abort_s);
}

constexpr std::string_view no_cycles = "a bucket leaves when its last gradient is there";
constexpr std::string_view levels =
    "the fastest of all ways is taken, with levels and without; see --comm_print_plan";

// A variable that sets a flag, which it returns as it would be written, or has no effect, with why.
struct VariableRow {
  std::string_view name;
  std::string_view flag;
  std::string (*set)(const Variable& variable, Config& config) = nullptr;
  std::string_view why = {};
};
constexpr std::array<VariableRow, 13> horovod_rows{
    {{.name = "FUSION_THRESHOLD", .flag = "comm_bucket_mb", .set = set_fusion},
     {.name = "TIMELINE", .flag = "trace_file", .set = set_timeline},
     {.name = "AUTOTUNE", .flag = "comm_calibrate", .set = set_autotune},
     {.name = "CYCLE_TIME", .flag = {}, .why = no_cycles},
     {.name = "TIMELINE_MARK_CYCLES", .flag = {}, .why = no_cycles},
     {.name = "CACHE_CAPACITY", .flag = {}, .why = "ranks negotiate nothing that could be kept"},
     {.name = "AUTOTUNE_LOG", .flag = {}, .why = "see --comm_print_plan"},
     {.name = "HIERARCHICAL_ALLREDUCE", .flag = {}, .why = levels},
     {.name = "TORUS_ALLREDUCE", .flag = {}, .why = levels},
     {.name = "STALL_CHECK_DISABLE", .flag = "comm_stall_warn_s", .set = disable_stall_warning},
     {.name = "START_TIMEOUT", .flag = "comm_start_timeout_s", .set = set_start_timeout},
     {.name = "STALL_CHECK_TIME_SECONDS", .flag = "comm_stall_warn_s", .set = set_stall_warning},
     {.name = "STALL_SHUTDOWN_TIME_SECONDS",
      .flag = "comm_stall_abort_s",
      .set = set_stall_shutdown}}};

bool is_given_by_flag(std::span<const Setting> settings, std::string_view name) {
  return std::ranges::any_of(settings, [&](const Setting& setting) {
    return setting.given && setting.flag->name == name;
  });
}

std::string apply_row(const VariableRow& row, const Variable& variable,
                      std::span<const Setting> settings, Config& config) {
  std::string_view why = row.why;
  std::string set;
  if (row.set != nullptr && is_given_by_flag(settings, row.flag)) {
    return fmt::format("{}={} has no effect: --{} is given", variable.first, variable.second,
                       row.flag);
  }
  if (row.set != nullptr) {
    set = row.set(variable, config);
    why = "that is how it is";
  }
  return set.empty() ? fmt::format("{}={} has no effect: {}", variable.first, variable.second, why)
                     : fmt::format("{}={} sets {}", variable.first, variable.second, set);
}

}  // namespace

std::vector<std::string> apply_horovod_variables(const EnvironmentVariables& variables,
                                                 std::span<const Setting> settings,
                                                 Config& config) {
  constexpr std::string_view prefix = "HOROVOD_";
  std::vector<std::string> lines;
  for (const Variable& variable : variables) {
    for (const VariableRow& row : horovod_rows) {
      if (variable.first.starts_with(prefix) &&
          std::string_view(variable.first).substr(prefix.size()) == row.name) {
        lines.push_back(apply_row(row, variable, settings, config));
      }
    }
  }
  return lines;
}

}  // namespace cnn::bench
