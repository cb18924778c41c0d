#include "tests/program/program.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <iterator>
#include <regex>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace cnn::tests {
namespace {

std::vector<std::string> with_program(const std::vector<std::string>& flags) {
  std::vector<std::string> words{CNN_PROGRAM};
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

pid_t start(std::vector<std::string> words, const std::string& out, const std::string& err) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    constexpr int mode = 0600;
    dup2(open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, mode), STDOUT_FILENO);
    dup2(open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, mode), STDERR_FILENO);
    execv(arguments.front(), arguments.data());
    _exit(127);
  }
  return child;
}

int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::vector<std::string> Finished::lines() const {
  std::vector<std::string> result;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) {
    result.push_back(line);
  }
  return result;
}

std::vector<std::string> Finished::step_lines() const {
  static const std::regex step("[0-9]+\timages/sec: .*");
  std::vector<std::string> result;
  for (const std::string& line : lines()) {
    if (std::regex_match(line, step)) {
      result.push_back(line);
    }
  }
  return result;
}

Finished run_program(const std::vector<std::string>& flags) {
  const TemporaryFolder folder;
  Finished finished;
  finished.status = status_of(start(with_program(flags), folder / "out", folder / "err"));
  finished.out = read_file(folder / "out");
  finished.err = read_file(folder / "err");
  return finished;
}

Finished run_in_shell(const std::vector<std::string>& flags, const std::string& redirections) {
  const TemporaryFolder folder;
  const std::string status = folder / "status";
  std::vector<std::string> words{"/bin/sh", "-c",
                                 "{ \"$@\"; echo $? > " + status + "; } " + redirections, "sh"};
  const std::vector<std::string> program = with_program(flags);
  words.insert(words.end(), program.begin(), program.end());
  status_of(start(std::move(words), folder / "out", folder / "err"));
  return {.status = std::stoi("0" + read_file(status)),
          .out = read_file(folder / "out"),
          .err = read_file(folder / "err")};
}

Finished run_and_signal(const std::vector<std::string>& flags,
                        const std::function<bool(const Finished&)>& when,
                        const std::vector<int>& signals) {
  const TemporaryFolder folder;
  const auto so_far = [&] {
    return Finished{.out = read_file(folder / "out"), .err = read_file(folder / "err")};
  };
  const pid_t child = start(with_program(flags), folder / "out", folder / "err");
  constexpr int max_waits = 3000;  // one minute in total
  for (int i = 0; i < max_waits && !when(so_far()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (std::size_t i = 0; i < signals.size(); ++i) {
    if (i > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    kill(child, signals[i]);
  }
  const int status = status_of(child);
  Finished finished = so_far();
  finished.status = status;
  return finished;
}

Finished run_and(const std::vector<std::string>& words,
                 const std::function<bool(const Finished&)>& when,
                 const std::function<void()>& then) {
  const TemporaryFolder folder;
  const auto so_far = [&] {
    return Finished{.out = read_file(folder / "out"), .err = read_file(folder / "err")};
  };
  const pid_t child = start(words, folder / "out", folder / "err");
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (when(so_far())) {
      then();
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  Finished finished = so_far();
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

void run_and_kill(const std::vector<std::string>& flags, int milliseconds) {
  const TemporaryFolder folder;
  const pid_t child = start(with_program(flags), folder / "out", folder / "err");
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  kill(child, SIGKILL);
  status_of(child);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

std::vector<std::string> joined(std::vector<std::string> flags,
                                const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

}  // namespace cnn::tests
