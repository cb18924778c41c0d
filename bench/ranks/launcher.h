#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "allreduce/world.h"
#include "bench/report/console.h"

namespace cnn::bench {

// The run for which a launcher such as mpirun has started this process, from its environment.
struct LauncherInfo {
  std::string_view by;       // "mpirun", "srun", ...
  int rank = 0;              // of this process
  std::optional<int> ranks;  // nothing: the environment does not say
};
// Returns nothing if no launcher started the process.
std::optional<LauncherInfo> detect_launcher();

// Returns whether this process is one of several unconnected Slurm tasks, as srun starts them
// without --mpi=pmix. Task 0 then prints how to start them correctly; the program must not run,
// since each task would believe it is the only one.
bool refuse_unconnected_tasks(Console& console);

// Returns the path of this process's program, for messages about how to start it; "cnn_benchmarks"
// if the system does not tell.
std::string program_path();

// How a launcher kills its processes when a run ends.
struct KillDelay {
  double seconds = 0;  // from the first sign of the end to SIGKILL
};
// Returns nothing if the launcher is not known to kill.
std::optional<KillDelay> kill_delay();

// Returns the process whose SIGCONT announces the end of the run: Open MPI sends SIGCONT first,
// SIGTERM odls_base_sigkill_timeout seconds later, and SIGKILL after the same time again. Nothing:
// no process does, or SIGCONT has its usual meaning.
std::optional<int> announcing_process();

// Connects the processes of the run by the module cnn_mpi.so beside the program, the only part that
// uses MPI; a build without MPI lacks the file. Throws Error if the file is missing, or MPI does
// not support the launcher. If MPI waits too long for other ranks, at the start or the end, prints
// this and ends the process with the status of a lost rank.
std::unique_ptr<allreduce::World> open_world(const LauncherInfo& by,
                                             allreduce::WorldOptions options, Console& console);

}  // namespace cnn::bench
