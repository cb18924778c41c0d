#pragma once

#include <string>
#include <vector>

#include "bench/compare/run.h"

namespace cnn::compare {

// Runs of one model, batch, precision, device and set of flags, on both sides.
struct Configuration {
  std::string label;  // what sets it apart from the others of the call
  std::vector<Run> base, fresh;
};

// Finds which runs do the same work and sorts them by when they started. A flag that only one of
// two builds knows sets nothing apart. across_machines: processor, cores and GPU may differ.
// Throws Error that names the difference if a configuration is on one side only, and Error that
// names the files if a side has one run twice, which would make it look more certain than it is, or
// if one run is on both sides, which would hide any regression.
std::vector<Configuration> find_configurations(std::vector<Run> base, std::vector<Run> fresh,
                                               bool across_machines);

// The same of one side, which is `base`; `fresh` is empty. Throws Error that names the files if one
// run is there twice.
std::vector<Configuration> group_runs(std::vector<Run> runs, bool across_machines);

// "oneDNN: 3.2.0 before, 3.4.1 now" for all that may explain a difference.
std::vector<std::string> unlike_surroundings(const Configuration& configuration);

}  // namespace cnn::compare
