#pragma once

#include <string>
#include <vector>

#include "bench/compare/run.h"

namespace cnn::page {

// Return the head of a run's page as plain text, made from its result file.

// Returns the machine that --simulate describes; empty for a run on the machine itself.
std::string simulated_machine_of(const compare::Json& json);

// Returns "resnet50 on NVIDIA H200", and says so if that is a simulated machine. For a search,
// "Largest --batch_size of resnet50 on NVIDIA H200".
std::string title_of(const compare::Json& json);

// Returns the description of the run: "training, batch 8, precision f32, ...".
std::string heading_of(const compare::Json& json);

// Returns the answer of --find_max_batch or --find_max_image_size: the largest size, its bytes, the
// limit, and why the next size is too large. Returns an empty text for other runs.
std::string search_answer(const compare::Json& json);

// Returns a sentence for each reason why the results are incomplete or useless: an error, a signal,
// a loss that was not finite. Returns nothing for a run that ended well.
std::vector<std::string> problems_of(const compare::Json& json);

}  // namespace cnn::page
