#include "tests/program/ranks.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace cnn::tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* mark_name = "CNN_TEST_OF_RANKS";

std::string mark() { return std::to_string(::getpid()); }

// Returns whether the process has all these variables in its environment and runs one of the
// programs.
bool matches(const fs::path& process, const std::vector<std::string>& variables) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink(process / "exe", ignored);
  if (program.parent_path() != fs::path(CNN_PROGRAM).parent_path()) {
    return false;
  }
  const std::string environment = '\0' + read_file(process / "environ");
  for (const std::string& variable : variables) {
    if (environment.find('\0' + variable + '\0') == std::string::npos) {
      return false;
    }
  }
  return true;
}

std::vector<pid_t> processes_with(const std::vector<std::string>& variables) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    pid_t number = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && stop == name.data() + name.size() &&
        matches(entry.path(), variables)) {
      found.push_back(number);
    }
  }
  return found;
}

constexpr const char* start_ranks = CNN_SOURCE_DIR "/tests/scripts/as_ranks.sh";
// A script for each process. It reports the exit code on stderr, because mpirun reports only one.
constexpr const char* run_and_report =
    "trap : TERM; "
    "[ \"$OMPI_COMM_WORLD_RANK\" != 1 ] || set -- \"$@\" $CNN_TEST_FLAGS_OF_RANK_1; "
    "\"$@\"; code=$?; "
    "echo \"rank $OMPI_COMM_WORLD_RANK left with $code\" >&2; exit $code";

std::vector<std::string> words_for(const std::string& program, int ranks,
                                   const std::vector<std::string>& flags) {
  std::vector<std::string> words{"/bin/bash", start_ranks, std::to_string(ranks),
                                 "/bin/sh",   "-c",        run_and_report,
                                 "sh",        program,     "--device=cpu"};
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

}  // namespace

std::string why_no_ranks() {
  if (std::system("command -v mpirun >/dev/null") != 0) {
    return "there is no mpirun; scripts/setup.sh installs it";
  }
  return fs::exists(fs::path(CNN_PROGRAM).parent_path() / "cnn_mpi.so")
             ? ""
             : "the program was built without MPI";
}

Finished run_ranks(int ranks, const std::vector<std::string>& flags) {
  return run_ranks(
      ranks, flags, [](const Finished&) { return false; }, [] {});
}

Finished run_ranks(int ranks, const std::vector<std::string>& flags,
                   const std::function<bool(const Finished&)>& when,
                   const std::function<void()>& then) {
  const std::string value = mark();
  const Environment marked(mark_name, value.c_str());
  return run_and(words_for(CNN_PROGRAM, ranks, flags), when, then);
}

Finished run_ranks_of(const std::string& program, int ranks,
                      const std::vector<std::string>& flags) {
  const std::string value = mark();
  const Environment marked(mark_name, value.c_str());
  const std::string path = (fs::path(CNN_PROGRAM).parent_path() / program).string();
  return run_and(
      words_for(path, ranks, flags), [](const Finished&) { return false; }, [] {});
}

pid_t process_of_rank(int rank) {
  const std::vector<pid_t> found = processes_with(
      {std::string(mark_name) + "=" + mark(), "OMPI_COMM_WORLD_RANK=" + std::to_string(rank)});
  return found.empty() ? 0 : found.front();
}

std::vector<pid_t> processes_of_ranks() {
  return processes_with({std::string(mark_name) + "=" + mark()});
}

std::map<int, int> codes_of(const Finished& run) {
  std::map<int, int> codes;
  std::size_t at = 0;
  while ((at = run.err.find(" left with ", at)) != std::string::npos) {
    const std::size_t rank = run.err.rfind("rank ", at) + 5;
    codes[std::stoi(run.err.substr(rank))] = std::stoi(run.err.substr(at + 11));
    ++at;
  }
  return codes;
}

}  // namespace cnn::tests
