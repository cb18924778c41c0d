#pragma once

#include <string_view>
#include <vector>

namespace cnn::bench {

// "1,0,3,2", as --gpu_indices takes it: numbers of CUDA devices, none twice; empty for "". Throws
// Error that names the flag.
std::vector<int> parse_gpu_indices(std::string_view text);

// The CUDA device of the rank at this place on its host, from 0 on: as the list says, or for an
// empty list the device of that number. Throws Error if the list is too short.
int device_at(std::string_view gpu_indices, int place);

}  // namespace cnn::bench
