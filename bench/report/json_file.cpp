#include "bench/report/json_file.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <system_error>
#include <unistd.h>

#include "runtime/error.h"

namespace cnn::bench {

void write_file_atomically(const std::string& path, const std::string& text) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  std::error_code problem;
  if (file) {
    std::filesystem::rename(temporary, path, problem);
  }
  if (!file || problem) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw Error(fmt::format("cannot write {}: check that its folder exists and has room", path));
  }
}

}  // namespace cnn::bench
