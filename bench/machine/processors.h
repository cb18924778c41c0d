#pragma once

#include <span>
#include <vector>

namespace cnn::bench {

// Returns the processors that this process may use, ascending.
std::vector<int> usable_processors();

// Returns part number `part` of the processors, cut into `parts` equal parts; one processor if
// there are more parts than processors.
std::vector<int> part_of(std::span<const int> processors, int part, int parts);

// Restricts the calling thread, and threads that it starts later, to these processors; threads
// bound by the user's OpenMP variables keep their binding. Throws Error if the system refuses.
void stay_on(std::span<const int> processors);

}  // namespace cnn::bench
