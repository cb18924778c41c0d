#include "bench/machine/plan_cache_file.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace cnn::bench {

std::optional<std::string> usual_plan_cache() {
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

}  // namespace cnn::bench
