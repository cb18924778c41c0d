#include "bench/report/append_line.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <tuple>
#include <unistd.h>

#include "bench/report/write_all.h"
#include "runtime/error.h"
#include "runtime/resource_limits.h"

namespace cnn::bench {
namespace {

constexpr mode_t line_file_mode = 0666;  // before the umask

// Returns 0, or the errno of the problem. Without locks in the file system, a single appending
// write is still atomic on local disks.
int append_locked(int descriptor, std::string_view line) {
  std::ignore = flock(descriptor, LOCK_EX);
  const off_t size = lseek(descriptor, 0, SEEK_END);
  char last = '\n';
  if (size > 0 && pread(descriptor, &last, 1, size - 1) != 1) {
    return errno;
  }
  const std::string text = (last == '\n' ? "" : "\n") + std::string(line);
  const int problem = write_all(descriptor, text);
  if (problem != 0 && size >= 0) {
    std::ignore = ftruncate(descriptor, size);
  }
  return problem;
}

}  // namespace

void append_line(std::string_view flag, const std::string& path, std::string_view line) {
  const int descriptor =
      open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, line_file_mode);
  int problem = descriptor < 0 ? errno : append_locked(descriptor, line);
  if (descriptor >= 0 && close(descriptor) != 0 && problem == 0) {
    problem = errno;
  }
  if (problem != 0) {
    throw Error(fmt::format("{}={}: cannot write it: {}", flag, path, write_problem_text(problem)));
  }
}

}  // namespace cnn::bench
