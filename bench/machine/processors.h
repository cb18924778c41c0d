#pragma once

#include <span>
#include <vector>

namespace cnn::bench {

// The processors that this process may use, ascending.
std::vector<int> usable_processors();

// Part number `part` of these, cut in `parts` equal ones; one processor where parts are more.
std::vector<int> part_of(std::span<const int> processors, int part, int parts);

// The calling thread, and those that it starts from now on, run on these only; where the user's
// OpenMP variables bind threads they stay where these want. Throws Error if the system refuses.
void stay_on(std::span<const int> processors);

}  // namespace cnn::bench
