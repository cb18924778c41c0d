#include "bench/plan/lms_budget.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <utility>
#include <vector>

#include "bench/flags/config.h"
#include "bench/flags/lms_policy.h"
#include "bench/flags/number_text.h"
#include "bench/ranks/rank_context.h"
#include "bench/report/units.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20U;

// Returns the device memory that all flags except --lms_limit leave.
std::size_t usable_bytes(const LmsFlags& flags, const RankContext& context) {
  const auto whole = static_cast<double>(context.memory.device);
  const double left = whole - static_cast<double>(flags.exclude) * mib;
  check(left > 0, fmt::format("--lms_exclude={} leaves nothing of the device's {:.0f} MiB",
                              flags.exclude, whole / mib));
  return static_cast<std::size_t>(shares_what_variables_leave(flags) ? left
                                                                     : left * flags.mem_ratio);
}

// Returns whether --lms_limit determines the budget, not what the other flags leave.
bool limit_acts(const LmsFlags& flags, const RankContext& context) {
  return flags.limit > 0 && flags.limit * megabyte <= usable_bytes(flags, context);
}

// Returns the flags other than --lms_limit that reduce the budget, each after its operation.
std::vector<std::pair<const char*, std::string>> reductions(const LmsFlags& flags) {
  std::vector<std::pair<const char*, std::string>> found;
  if (flags.exclude > 0) {
    found.emplace_back("less", fmt::format("--lms_exclude={}", flags.exclude));
  }
  if (flags.mem_ratio != 1 && !shares_what_variables_leave(flags)) {
    found.emplace_back("times", fmt::format("--lms_mem_ratio={:g}", flags.mem_ratio));
  }
  return found;
}

}  // namespace

bool shares_what_variables_leave(const LmsFlags& flags) { return policy_of(flags) == "tflms2"; }

std::size_t device_budget(const LmsFlags& flags, const RankContext& context) {
  return limit_acts(flags, context) ? flags.limit * megabyte : usable_bytes(flags, context);
}

std::string source_of_budget(const LmsFlags& flags, const RankContext& context) {
  if (limit_acts(flags, context)) {
    return fmt::format("--lms_limit={}", flags.limit);
  }
  std::string text = context.memory.text;
  for (const auto& [operation, flag] : reductions(flags)) {
    text += fmt::format(", {} {}", operation, flag);
  }
  return text;
}

std::string idle_budget_flags(const LmsFlags& flags, const RankContext& context) {
  if (flags.limit == 0) {
    return {};
  }
  const std::string source = source_of_budget(flags, context);
  if (!limit_acts(flags, context)) {
    return fmt::format("--lms_limit={} does not act: {:.0f} MiB are there ({})", flags.limit,
                       static_cast<double>(device_budget(flags, context)) / mib, source);
  }
  std::vector<std::string> idle;
  for (const auto& [operation, flag] : reductions(flags)) {
    idle.push_back(flag);
  }
  return idle.empty()
             ? std::string()
             : fmt::format("{} {} not act: {} leaves no less memory free", fmt::join(idle, " and "),
                           idle.size() == 1 ? "does" : "do", source);
}

std::size_t host_budget(const LmsFlags& flags, const RankContext& context) {
  if (!context.memory.host) {
    return 0;
  }
  constexpr double typical_share = 0.8;  // of free memory
  if (flags.host_limit.value_or(0) > 0) {
    return std::min(*flags.host_limit * megabyte, *context.memory.host);
  }
  if (const char* text = std::getenv("TF_GPU_HOST_MEM_LIMIT_IN_MB")) {
    const std::optional<std::int64_t> limit = read_integer(text);
    check(limit && *limit > 0,
          fmt::format("TF_GPU_HOST_MEM_LIMIT_IN_MB={} is no limit of memory: it must be a whole "
                      "number of megabytes above 0",
                      text));
    // Compared in megabytes: the bytes of a huge limit would overflow.
    return static_cast<std::size_t>(*limit) > *context.memory.host / megabyte
               ? *context.memory.host
               : static_cast<std::size_t>(*limit) * megabyte;
  }
  if (context.backend.described) {
    return *context.memory.host;  // pinnable memory of the profile
  }
  return static_cast<std::size_t>(typical_share * static_cast<double>(*context.memory.host));
}

}  // namespace cnn::bench
