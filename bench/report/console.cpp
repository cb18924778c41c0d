#include "bench/report/console.h"

#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <tuple>
#include <unistd.h>

#include "bench/report/pseudo_terminal.h"
#include "bench/report/write_all.h"
#include "runtime/resource_limits.h"

namespace cnn::bench {
namespace {

// A failed write to stderr cannot be reported.
void write_to_stderr(std::string_view text) { std::ignore = write_all(STDERR_FILENO, text); }

}  // namespace

Console::Console() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Console::become_rank(int rank) {
  rank_ = rank;
  keep_lines_whole(STDOUT_FILENO);
  keep_lines_whole(STDERR_FILENO);
}

void Console::clear_progress() {
  if (progress_shown_) {
    write_to_stderr("\r\x1b[K");
    progress_shown_ = false;
  }
}

void Console::print(std::string_view line) {
  if (speaks()) {
    print_own(line);
  }
}

void Console::print_own(std::string_view line) {
  clear_progress();
  if (lost_) {
    return;
  }
  if (const int problem = write_all(STDOUT_FILENO, fmt::format("{}\n", line)); problem != 0) {
    lost_ = fmt::format("stdout: a line could not be written: {}", write_problem_text(problem));
  }
}

void Console::print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    print(line);
  }
}

void Console::note(std::string_view line) {
  if (speaks()) {
    clear_progress();
    write_to_stderr(fmt::format("{}\n", line));
  }
}

void Console::note_own(std::string_view line) {
  clear_progress();
  write_to_stderr(speaks() ? fmt::format("{}\n", line)
                           : fmt::format("rank {}: {}\n", *rank_, line));
}

void Console::progress(std::string_view line) {
  if (shows_progress()) {
    write_to_stderr(fmt::format("\r\x1b[K{}", line));
    progress_shown_ = true;
  }
}

void guard_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  make_file_limit_an_error();
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) < 0) {
      open("/dev/null", O_RDONLY);  // takes the closed descriptor; writes to it fail
    }
  }
}

}  // namespace cnn::bench
