#include "bench/report/console.h"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace cnn::bench {

Console::Console() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Console::clear_progress() {
  if (progress_shown_) {
    fmt::print(stderr, "\r\x1b[K");
    progress_shown_ = false;
  }
}

void Console::print(std::string_view line) {
  clear_progress();
  fmt::print(stdout, "{}\n", line);
  std::fflush(stdout);
}

void Console::print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    print(line);
  }
}

void Console::note(std::string_view line) {
  clear_progress();
  fmt::print(stderr, "{}\n", line);
}

void Console::progress(std::string_view line) {
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", line);
    progress_shown_ = true;
  }
}

}  // namespace cnn::bench
