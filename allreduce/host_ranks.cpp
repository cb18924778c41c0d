#include "allreduce/host_ranks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace cnn::allreduce {
namespace {

namespace fs = std::filesystem;

constexpr const char* job_variable = "PMIX_NAMESPACE";
// mpirun sets the first variable of each pair, srun the second.
constexpr std::array<const char*, 2> rank_variables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
constexpr std::array<const char*, 2> rank_counts{"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

std::string own_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

// Returns the value of a variable in /proc/<process>/environ.
std::string_view variable_in(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return entry.substr(name.size() + 1);
    }
    environment.remove_prefix(std::min(environment.size(), entry.size() + 1));
  }
  return {};
}

std::optional<int> rank_in(std::string_view environment) {
  for (const char* const name : rank_variables) {
    if (const std::optional<int> rank = number_of(variable_in(environment, name))) {
      return rank;
    }
  }
  return std::nullopt;
}

std::optional<int> own_number(const std::array<const char*, 2>& names) {
  for (const char* const name : names) {
    if (const std::optional<int> number = number_of(own_variable(name))) {
      return number;
    }
  }
  return std::nullopt;
}

// Returns the tasks of a node from Slurm's list, where "4(x2),1" means nodes of 4, 4 and 1 tasks; 0
// if the list lacks the node.
int tasks_of_node(std::string_view list, int node) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    const std::size_t bracket = entry.find("(x");
    const int tasks = number_of(entry.substr(0, bracket)).value_or(0);
    int nodes = 1;
    if (bracket != std::string_view::npos && entry.ends_with(')')) {
      nodes = number_of(entry.substr(bracket + 2, entry.size() - bracket - 3)).value_or(1);
    }
    if (node < nodes) {
      return tasks;
    }
    node -= nodes;
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
  }
  return 0;
}

int started_on_host() {
  if (const std::optional<int> started = number_of(own_variable("OMPI_COMM_WORLD_LOCAL_SIZE"))) {
    return *started;
  }
  return tasks_of_node(own_variable("SLURM_STEP_TASKS_PER_NODE"),
                       number_of(own_variable("SLURM_NODEID")).value_or(0));
}

bool is_stopped(const fs::path& process) {
  const std::string stat = read_text(process / "stat");
  const std::size_t bracket = stat.rfind(')');
  return bracket != std::string::npos && stat.compare(bracket, 4, ") T ") == 0;
}

bool is_in(const fs::path& process, const std::string& call) {
  std::error_code error;
  for (fs::directory_iterator at(process / "task", error), end; !error && at != end;
       at.increment(error)) {
    if (read_text(at->path() / "comm") == call + "\n") {
      return true;
    }
  }
  return false;
}

struct ObservedProcess {
  std::string process;
  bool runs_program = false;  // false: a shell that will start the program
  bool stopped = false, waits = false;
};

// Finds processes by rank. A launcher may have started a shell that starts the program: the process
// that runs the program counts, unless another process of the rank is stopped.
std::map<int, ObservedProcess> ranks_of_host(const std::string& call) {
  std::map<int, ObservedProcess> ranks;
  std::error_code error, ignored;
  const std::string job = own_variable(job_variable);
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const fs::path process = at->path();
    if (!number_of(process.filename().string())) {
      continue;
    }
    const std::string environment = read_text(process / "environ");
    const std::optional<int> rank = rank_in(environment);
    if (!rank || job.empty() || variable_in(environment, job_variable) != job) {
      continue;
    }
    const ObservedProcess seen{
        .process = process.filename().string(),
        .runs_program = fs::read_symlink(process / "exe", ignored) == program,
        .stopped = is_stopped(process),
        .waits = is_in(process, call)};
    ObservedProcess& known = ranks[*rank];
    if (known.process.empty() || seen.stopped || (seen.runs_program && !known.stopped)) {
      known = seen;
    }
  }
  return ranks;
}

std::string state_of(const ObservedProcess& rank, const std::string& call) {
  const std::string process = " (process " + rank.process + ")";
  return rank.stopped        ? "is stopped" + process
         : rank.waits        ? "waits too"
         : rank.runs_program ? "has not come to " + call + process
                             : "has not started the program" + process;
}

}  // namespace

HostRanks inspect_host_ranks(const std::string& call) {
  const int self = own_number(rank_variables).value_or(0);
  const std::map<int, ObservedProcess> ranks = ranks_of_host(call);
  HostRanks found;
  std::string missing, waiting;
  for (const auto& [rank, seen] : ranks) {
    if (rank == self) {
      continue;
    }
    const bool waits = seen.waits && !seen.stopped;
    std::string& list = waits ? waiting : missing;
    list += "rank " + std::to_string(rank) + " " + state_of(seen, call) + ", ";
    found.lower_rank_waits = found.lower_rank_waits || (waits && rank < self);
  }
  const int started = started_on_host();
  if (const int gone = started - static_cast<int>(ranks.size()); gone > 0) {
    missing += std::to_string(gone) +
               " more of this host cannot be seen: they have ended or have not been started, ";
  }
  const int all = own_number(rank_counts).value_or(0);
  if (all > started) {
    waiting += "those of other hosts cannot be seen from here, ";
  }
  found.text = missing.empty() ? "no rank of this host is missing, " : missing;
  found.text += waiting;
  found.text.resize(found.text.size() - 2);
  return found;
}

}  // namespace cnn::allreduce
