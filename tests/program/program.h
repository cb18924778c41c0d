#pragma once

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/files.h"

namespace cnn::tests {

// The exit status and the output of a run of cnn_benchmarks.
struct Finished {
  int status = -1;  // exit status; 128 + n after signal n
  std::string out, err;

  std::vector<std::string> lines() const;  // lines of `out`
  // Returns the lines of `out` that show a step: a number, a tab, "images/sec: ".
  std::vector<std::string> step_lines() const;
};

// Runs the program with these flags until it ends.
Finished run_program(const std::vector<std::string>& flags);

// Runs the program with shell redirections such as ">&-", "| head -1" or "> /dev/full". The status
// is the program's own, even in a pipe; `out` and `err` hold what was not redirected.
Finished run_in_shell(const std::vector<std::string>& flags, const std::string& redirections);

// Starts the program and polls `when` until it is true. Then sends the signals half a second apart
// and waits for the end.
Finished run_and_signal(const std::vector<std::string>& flags,
                        const std::function<bool(const Finished&)>& when,
                        const std::vector<int>& signals);

// Starts this command and polls `when` until it is true or the process has ended. If it is true,
// calls `then` once. Waits for the end.
Finished run_and(const std::vector<std::string>& words,
                 const std::function<bool(const Finished&)>& when,
                 const std::function<void()>& then);

// Starts the program, kills it with SIGKILL after `milliseconds` and waits for its end.
void run_and_kill(const std::vector<std::string>& flags, int milliseconds);

// Sets an environment variable for started programs until the end of the scope.
class Environment {
 public:
  Environment(const char* variable, const char* value) : variable_(variable) {
    setenv(variable, value, 1);
  }
  ~Environment() { unsetenv(variable_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* variable_;
};

std::vector<std::string> words_of(const std::string& line);  // split at blanks and tabs

// Returns the flags followed by `more`.
std::vector<std::string> joined(std::vector<std::string> flags,
                                const std::vector<std::string>& more);

}  // namespace cnn::tests
