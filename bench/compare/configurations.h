#pragma once

#include <string>
#include <vector>

#include "bench/compare/run.h"

namespace cnn::compare {

// Runs of one model, batch, precision, device and set of flags, on both sides.
struct Configuration {
  std::string label;  // distinguishes it from the other configurations of the call
  std::vector<Run> base, candidate;
};

// Groups runs that do the same work and sorts them by their start. A flag that only one of two
// builds knows does not separate runs. across_machines: processor, cores and GPU may differ. Throws
// Error with the difference if a configuration is on one side only. Throws Error with the files if
// a side has one run twice, which would overstate its certainty, or if one run is on both sides,
// which would hide any regression.
std::vector<Configuration> find_configurations(std::vector<Run> base, std::vector<Run> candidate,
                                               bool across_machines);

// Groups the runs of one side, `base`; `candidate` is empty. Throws Error with the files if one run
// occurs twice.
std::vector<Configuration> group_runs(std::vector<Run> runs, bool across_machines);

// Returns lines such as "oneDNN: 3.2.0 before, 3.4.1 now" for everything that may explain a
// difference.
std::vector<std::string> unlike_surroundings(const Configuration& configuration);

}  // namespace cnn::compare
