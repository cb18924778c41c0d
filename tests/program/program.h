#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cnn::tests {

// What a run of cnn_benchmarks left.
struct Finished {
  int status = -1;  // exit status; 128 + n after signal n
  std::string out, err;

  std::vector<std::string> lines() const;  // of out
  // Lines of out that show a step: a number, a tab, "images/sec: ".
  std::vector<std::string> step_lines() const;
};

// Runs the program with these flags to its end.
Finished run_program(const std::vector<std::string>& flags);

// Starts the program, kills it with SIGKILL after that many milliseconds, and waits for it.
void run_and_kill(const std::vector<std::string>& flags, int milliseconds);

// A folder of its own that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::vector<std::string> words_of(const std::string& line);  // split at blanks and tabs
std::string read_file(const std::filesystem::path& path);

}  // namespace cnn::tests
