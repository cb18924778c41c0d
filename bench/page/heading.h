#pragma once

#include <string>
#include <vector>

#include "bench/compare/run.h"

namespace cnn::page {

// Return the head of a run's page as plain text, made from its result file.

// Returns the machine that --simulate describes; empty for a run on the machine itself.
std::string simulated_machine_of(const compare::Json& json);

// Returns "resnet50 on NVIDIA H200", and says so if that is a simulated machine.
std::string title_of(const compare::Json& json);

// Returns the description of the run: "training, batch 8, precision f32, ...".
std::string heading_of(const compare::Json& json);

// Returns a sentence for each reason why the results are incomplete or useless: an error, a signal,
// a loss that was not finite. Returns nothing for a run that ended well.
std::vector<std::string> problems_of(const compare::Json& json);

}  // namespace cnn::page
