#pragma once

#include <string_view>
#include <vector>

namespace cnn::bench {

// Parses "1,0,3,2", the value of --gpu_indices: distinct numbers of CUDA devices; empty for "".
// Throws Error with the flag's name.
std::vector<int> parse_gpu_indices(std::string_view text);

// Returns the CUDA device of the rank at this index on its host, from 0: the list's entry, or for
// an empty list the index itself. Throws Error if the list is too short.
int device_at(std::string_view gpu_indices, int local_rank);

}  // namespace cnn::bench
