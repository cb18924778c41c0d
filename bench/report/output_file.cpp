#include "bench/report/output_file.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <sys/stat.h>
#include <system_error>
#include <tuple>
#include <unistd.h>

#include "bench/report/write_all.h"
#include "runtime/error.h"
#include "runtime/file_identity.h"
#include "runtime/resource_limits.h"

namespace cnn::bench {
namespace {

constexpr mode_t read_and_write = 0666;  // before the umask
constexpr mode_t permission_bits = 07777;

std::optional<struct stat> look(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? std::optional(found) : std::nullopt;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Returns stdout or stderr if the file is one of them: replacing it would remove the printed lines.
std::optional<int> standard_stream(const struct stat& file) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat stream {};
    if (fstat(descriptor, &stream) == 0 && is_same(stream, file)) {
      return descriptor;
    }
  }
  return std::nullopt;
}

// Like write_all, and closes the descriptor; a negative descriptor means a failed open.
int write_and_close(int descriptor, std::string_view text) {
  if (descriptor < 0) {
    return errno;
  }
  const int problem = write_all(descriptor, text);
  return close(descriptor) != 0 && problem == 0 ? errno : problem;
}

std::string temporary_beside(const std::string& path) {
  return fmt::format("{}.{}.tmp", path, getpid());
}

int open_new(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, read_and_write);
}

// Returns 0 if a file can be created beside the target, else errno.
int try_beside(const std::string& target) {
  const std::string temporary = temporary_beside(target);
  const int problem = write_and_close(open_new(temporary), "");
  if (problem == 0) {
    unlink(temporary.c_str());
  }
  return problem;
}

[[noreturn]] void fail_with(const std::string& name, int problem) {
  throw Error(fmt::format("{}: cannot write it: {}", name, write_problem_text(problem)));
}

}  // namespace

OutputFile::OutputFile(std::string_view flag, const std::string& path)
    : name_(fmt::format("{}={}", flag, path)), target_(path) {
  const std::optional<struct stat> there = look(path);
  if (there && S_ISDIR(there->st_mode)) {
    fail(EISDIR);
  }
  if (const std::optional<int> stream = there ? standard_stream(*there) : std::nullopt) {
    mode_ = WriteMode::descriptor;
    descriptor_ = *stream;
    return;
  }
  const std::string end = end_of_links(path).string();
  const std::optional<struct stat> at_end = look(end);
  // Links in /proc do not always name their target, such as a file without a name.
  const bool reached = there ? at_end && is_same(*there, *at_end) : true;
  if (reached && (!there || S_ISREG(there->st_mode))) {
    target_ = end;
    const int problem = there && access(path.c_str(), W_OK) != 0 ? errno : try_beside(end);
    if (problem == 0) {
      return;
    }
    if (!there) {
      fail(problem);
    }
  }
  mode_ = WriteMode::in_place;
  if (access(path.c_str(), W_OK) != 0) {
    fail(errno);
  }
}

void OutputFile::fail(int problem) const { fail_with(name_, problem); }

void OutputFile::write(std::string_view text) const {
  if (mode_ == WriteMode::descriptor) {
    if (const int problem = write_all(descriptor_, text); problem != 0) {
      fail(problem);
    }
  } else if (mode_ == WriteMode::in_place) {
    write_in_place(text);
  } else {
    replace(text);
  }
}

void OutputFile::write_in_place(std::string_view text) const {
  const int problem = write_and_close(open(target_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC), text);
  if (problem != 0) {
    fail(problem);
  }
}

void OutputFile::replace(std::string_view text) const {
  const std::string temporary = temporary_beside(target_);
  const std::optional<struct stat> old = look(target_);
  const int descriptor = open_new(temporary);
  if (descriptor >= 0 && old) {
    std::ignore = fchmod(descriptor, old->st_mode & permission_bits);
  }
  int problem = write_and_close(descriptor, text);
  if (problem == 0 && std::rename(temporary.c_str(), target_.c_str()) != 0) {
    problem = errno;
  }
  if (problem != 0) {
    unlink(temporary.c_str());
    if (problem == EBUSY) {  // a file that is a mount point, as in containers
      write_in_place(text);
      return;
    }
    fail(problem);
  }
}

void make_folder_of(const std::string& path) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
}

std::string with_folder(const std::string& path) {
  make_folder_of(path);
  return path;
}

void append_to_file(std::string_view flag, const std::string& path, std::string_view text) {
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, read_and_write);
  if (const int problem = write_and_close(descriptor, text); problem != 0) {
    fail_with(fmt::format("{}={}", flag, path), problem);
  }
}

}  // namespace cnn::bench
