#include "bench/ranks/launcher.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <unistd.h>

#include "allreduce/transport.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

namespace fs = std::filesystem;

// The environment variables that launchers set for their processes.
struct LauncherNames {
  std::string_view name;
  const char* rank;
  const char* ranks;
};
constexpr std::array<LauncherNames, 4> launchers{
    {{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
     {"mpiexec", "PMI_RANK", "PMI_SIZE"},
     {"mpiexec", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
     {"a PMIx launcher", "PMIX_RANK", "PMIX_SIZE"}}};

// srun sets this variable for each task of a step. Batch scripts have SLURM_NTASKS, but not this
// one.
constexpr const char* slurm_tasks = "SLURM_STEP_NUM_TASKS";

std::optional<int> number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) {
    return std::nullopt;
  }
  const std::string_view digits(text);
  int number = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc() && stop == digits.data() + digits.size();
  return whole ? std::optional(number) : std::nullopt;
}

std::string_view last_problem() {
  const char* const problem = ::dlerror();
  return problem == nullptr ? "unknown reason" : problem;
}

// PMIx namespaces of jobs that srun itself starts begin with this prefix.
constexpr std::string_view slurm_pmix_job = "slurm.";

std::string_view text_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::string_view() : text;
}

// The module stays open, since it contains the transports' code. Its symbols are global: MPI opens
// its own modules, which resolve MPI's symbols.
const allreduce::WorldEntry& open_module(std::string_view launcher) {
  std::error_code ignored;
  const fs::path path = fs::read_symlink("/proc/self/exe", ignored).parent_path() / "cnn_mpi.so";
  check(fs::is_regular_file(path, ignored),
        fmt::format("{} has started several processes, but this build has no MPI: install "
                    "libopenmpi-dev and openmpi-bin (scripts/setup.sh does) and build again, or "
                    "start one process with --num_gpus=N",
                    launcher));
  void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    throw Error(
        fmt::format("MPI cannot be loaded: {}; is the Open MPI that the program was built "
                    "with installed?",
                    last_problem()));
  }
  void* const entry = ::dlsym(module, allreduce::world_entry_name);
  check(entry != nullptr, fmt::format("{} is not this program's MPI module", path.string()));
  return *reinterpret_cast<allreduce::WorldEntryOf>(entry)();
}

}  // namespace

std::optional<LauncherInfo> detect_launcher() {
  for (const LauncherNames& launcher : launchers) {
    if (const std::optional<int> rank = number_of(launcher.rank)) {
      if (&launcher == &launchers.back() && text_of("PMIX_NAMESPACE").starts_with(slurm_pmix_job)) {
        return LauncherInfo{.by = "srun", .rank = *rank, .ranks = number_of(slurm_tasks)};
      }
      return LauncherInfo{.by = launcher.name, .rank = *rank, .ranks = number_of(launcher.ranks)};
    }
  }
  return std::nullopt;
}

bool refuse_unconnected_tasks(Console& console) {
  const int tasks = number_of(slurm_tasks).value_or(1);
  if (detect_launcher() || tasks < 2) {
    return false;
  }
  console.become_rank(number_of("SLURM_PROCID").value_or(0));
  console.note(
      fmt::format("srun has started {} tasks that cannot find one another, so each would run "
                  "alone: start them by srun --mpi=pmix (srun --mpi=list shows whether this Slurm "
                  "has it) or by mpirun; for {} separate runs, put env -u {} before the program",
                  tasks, tasks, slurm_tasks));
  return true;
}

std::string program_path() {
  std::error_code unknown;
  const fs::path path = fs::read_symlink("/proc/self/exe", unknown);
  return unknown ? "cnn_benchmarks" : path.string();
}

std::optional<KillDelay> kill_delay() {
  const std::optional<LauncherInfo> by = detect_launcher();
  if (!by || by->by != launchers.front().name) {
    return std::nullopt;
  }
  double seconds = 1;  // Open MPI's default, in versions 4 and 5
  for (const char* const variable :
       {"OMPI_MCA_odls_base_sigkill_timeout", "PRTE_MCA_odls_base_sigkill_timeout"}) {
    if (const std::optional<int> set = number_of(variable)) {
      seconds = *set;
    }
  }
  return KillDelay{.seconds = announcing_process() ? 2 * seconds : seconds};
}

// A launcher starts each rank in a separate process group. If it forwards job control to the ranks,
// SIGCONT only ends a pause.
std::optional<int> announcing_process() {
  const std::optional<LauncherInfo> by = detect_launcher();
  if (!by || by->by != launchers.front().name ||
      std::getenv("OMPI_MCA_orte_forward_job_control") != nullptr) {
    return std::nullopt;
  }
  std::ifstream stat(fmt::format("/proc/{}/stat", ::getpgrp()));
  std::string text;
  std::getline(stat, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream rest(text.substr(name_end + 1));
  char state = 0;
  int parent = 0;
  rest >> state >> parent;
  return parent > 0 ? std::optional(parent) : std::nullopt;
}

std::unique_ptr<allreduce::World> open_world(const LauncherInfo& by,
                                             allreduce::WorldOptions options, Console& console) {
  constexpr int of_nobody = -1;
  options.start.expired = [&console](const std::string& message) {
    console.note_own(message);
    ::_exit(allreduce::PeerLost(of_nobody, message).exit_code());
  };
  std::unique_ptr<allreduce::World> world = open_module(by.by).open(options);
  check(!by.ranks || *by.ranks == world->ranks(),
        fmt::format("{} has started {} processes, but MPI knows of {}: it is not the launcher of "
                    "the Open MPI that the program was built with",
                    by.by, *by.ranks, world->ranks()));
  return world;
}

}  // namespace cnn::bench
