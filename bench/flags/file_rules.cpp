#include "bench/flags/file_rules.h"

#include <fmt/format.h>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "bench/flags/flag_table.h"
#include "runtime/error.h"
#include "runtime/file_identity.h"

namespace cnn::bench {

namespace {

enum class Access : unsigned char { reads, writes };

struct FileFlag {
  std::string_view name;
  Access access;
};

// --lms_plan_out writes after --lms_plan_file has been read, and then the same plan.
constexpr FileFlag file_flags[] = {
    {"data_dir", Access::reads},      {"class_list", Access::reads},
    {"simulate", Access::reads},      {"lms_plan_file", Access::reads},
    {"lms_plan_out", Access::writes}, {"lms_trace", Access::writes},
    {"result_json", Access::writes},  {"html_report", Access::writes},
    {"steps_csv", Access::writes},    {"history", Access::writes},
    {"hash_file", Access::writes},    {"trace_file", Access::writes},
    {"tfprof_file", Access::writes},  {"graph_file", Access::writes},
    {"plan_cache", Access::writes},   {"comm_calibration_file", Access::writes},
    {"take_turns", Access::writes},
};

bool may_share(std::string_view first, std::string_view second) {
  return first == "lms_plan_file" && second == "lms_plan_out";
}

std::string path_of(const FileFlag& flag, const Config& config) {
  const Plain value = find_flag(flag.name)->member->load(config);
  const auto* const path = std::get_if<std::string>(&value);
  const bool is_machine = flag.name == "simulate" && path != nullptr && !path->ends_with(".json");
  return path == nullptr || path->empty() || is_machine ? std::string() : file_identity(*path);
}

}  // namespace

void check_files(const Config& config) {
  std::map<std::string, FileFlag> seen;
  for (const FileFlag& flag : file_flags) {
    const std::string path = path_of(flag, config);
    if (path.empty()) {
      continue;
    }
    const auto [earlier, is_new] = seen.try_emplace(path, flag);
    const FileFlag& other = earlier->second;
    if (!is_new && flag.access == Access::writes && !may_share(other.name, flag.name)) {
      throw Error(
          fmt::format("--{} and --{} name the same file, {}, and the second would replace it: give "
                      "each its own",
                      other.name, flag.name, path));
    }
  }
}

}  // namespace cnn::bench
