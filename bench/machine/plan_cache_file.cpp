#include "bench/machine/plan_cache_file.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

namespace cnn::bench {

std::optional<std::string> default_plan_cache() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache == '/') {
    folder = cache;
  } else if (home != nullptr && *home == '/') {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return std::nullopt;
  }
  folder /= "cnn_benchmarks";
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  const bool writable = !problem && ::access(folder.c_str(), W_OK) == 0;
  return writable ? std::optional((folder / "plan_cache").string()) : std::nullopt;
}

std::string no_plan_cache_note() {
  return "plan cache: none, since neither $XDG_CACHE_HOME nor ~/.cache can be written: each run "
         "times kernels anew and may choose others; name a file by --plan_cache";
}

std::string plan_cache_note(const std::string& file, std::size_t choices, std::size_t foreign,
                            std::string_view others) {
  std::string note = fmt::format("plan cache: {} choices in {}", choices, file);
  if (foreign > 0) {
    note += fmt::format(", and {} for other {}, which are not used", foreign, others);
  }
  return note;
}

}  // namespace cnn::bench
