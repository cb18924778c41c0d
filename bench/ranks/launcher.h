#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "allreduce/world.h"
#include "bench/report/console.h"

namespace cnn::bench {

// The run that a launcher such as mpirun has started this process for, as its environment tells.
struct Launched {
  std::string_view by;       // "mpirun", "srun", ...
  int rank = 0;              // of this process
  std::optional<int> ranks;  // nothing: the environment does not say how many there are
};
// Nothing: the process was started alone.
std::optional<Launched> launched();

// Returns whether this process is one of several tasks of a step of Slurm that no launcher has told
// of one another, as srun starts them without --mpi=pmix. Task 0 then says on the console how to
// start them; the program must not run, since each task would take itself for the only one.
bool refuse_unconnected_tasks(Console& console);

// The path of this process's program, for lines that tell how to start it; "cnn_benchmarks" where
// the system does not tell.
std::string program_path();

// How a launcher that ends a run kills its processes.
struct KillDelay {
  double seconds = 0;  // from the first sign of the end until SIGKILL
};
// Nothing: no launcher is known to kill.
std::optional<KillDelay> kill_delay();

// The process whose SIGCONT announces the end of the run: Open MPI sends that first, SIGTERM
// odls_base_sigkill_timeout seconds later, and SIGKILL after as long again. Nothing: no process
// does, or SIGCONT means what it usually means.
std::optional<int> announcing_process();

// The processes of the run, by the module cnn_mpi.so beside the program, which alone knows MPI; a
// build without MPI has no such file. Throws Error where it is missing, or where MPI does not know
// of the launcher. Where MPI waits too long for other ranks, at the start or at the end, says so on
// the console and ends the process by the status of a lost rank.
std::unique_ptr<allreduce::World> open_world(const Launched& by, allreduce::WorldOptions options,
                                             Console& console);

}  // namespace cnn::bench
