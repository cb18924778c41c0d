#include "runtime/resource_limits.h"

#include <cerrno>
#include <csignal>
#include <new>
#include <optional>
#include <sys/resource.h>
#include <system_error>

namespace cnn {
namespace {

// Returns the limit in bytes; nothing if there is no limit.
template <class Resource>
std::optional<rlim_t> limit_of(Resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
             ? std::optional(limit.rlim_cur)
             : std::nullopt;
}

std::string in_kib(rlim_t bytes) { return std::to_string(bytes / 1024) + " KiB"; }

}  // namespace

void make_file_limit_an_error() { std::signal(SIGXFSZ, SIG_IGN); }

std::string write_problem_text(int problem) {
  const std::string text = std::generic_category().message(problem);
  const std::optional<rlim_t> limit = limit_of(RLIMIT_FSIZE);
  return problem == EFBIG && limit ? text + " (this process may write files of at most " +
                                         in_kib(*limit) + ": raise that by ulimit -f)"
                                   : text;
}

std::string memory_limit_text() {
  if (const std::optional<rlim_t> limit = limit_of(RLIMIT_AS)) {
    return "; the address space of this process is limited to " + in_kib(*limit) +
           ": raise that by ulimit -v";
  }
  if (const std::optional<rlim_t> limit = limit_of(RLIMIT_DATA)) {
    return "; the data of this process is limited to " + in_kib(*limit) +
           ": raise that by ulimit -d";
  }
  return "";
}

std::string failure_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) {
    return error.what();
  }
  const std::string limit = memory_limit_text();
  return "out of memory: the system gives this process no more" +
         (limit.empty() ? "; end other programs" : limit) +
         ", or use less data or a smaller --batch_size";
}

}  // namespace cnn
