#pragma once

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/files.h"

namespace cnn::tests {

// The exit status and output of a run of cnn_benchmarks.
struct Finished {
  int status = -1;  // exit status; 128 + n after signal n
  std::string out, err;

  std::vector<std::string> lines() const;  // of out
  // Lines of out that show a step: a number, a tab, "images/sec: ".
  std::vector<std::string> step_lines() const;
};

// Runs the program with these flags to its end.
Finished run_program(const std::vector<std::string>& flags);

// Runs it with redirections in the words of a shell: ">&-", "| head -1", "> /dev/full". status is
// the program's own, also in a pipe; out and err hold what is not redirected.
Finished run_in_shell(const std::vector<std::string>& flags, const std::string& redirections);

// Starts the program; calls `when` with it over and over; after that is true sends it the signals,
// half a second apart, and waits for its end.
Finished run_and_signal(const std::vector<std::string>& flags,
                        const std::function<bool(const Finished&)>& when,
                        const std::vector<int>& signals);

// Starts these words; calls `when` over and over until it is true or the process has ended; then,
// if it is true, calls `then` once; waits for the end.
Finished run_and(const std::vector<std::string>& words,
                 const std::function<bool(const Finished&)>& when,
                 const std::function<void()>& then);

// Starts the program, kills it with SIGKILL after that many milliseconds, and waits for it.
void run_and_kill(const std::vector<std::string>& flags, int milliseconds);

// Sets an environment variable for the programs that are started, and takes it away.
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

}  // namespace cnn::tests
