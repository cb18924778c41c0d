#include "bench/report/trace_file.h"

#include <filesystem>
#include <fstream>

#include "runtime/error.h"

namespace cnn::bench {

void write_trace(const std::string& path, const StepPlan& plan, const Timeline& timeline) {
  const std::filesystem::path file_path(path);
  std::error_code ignored;  // opening the file tells what is wrong
  std::filesystem::create_directories(file_path.parent_path(), ignored);
  std::ofstream file(file_path);
  file << chrome_trace(plan, timeline, "cnn_benchmarks");
  file.close();
  check(file.good(), "cannot write --trace_file=" + path + ": give a path in a writable folder");
}

}  // namespace cnn::bench
