#pragma once

#include <vector>

namespace cnn {

// Returns the middle of the sorted values, or the mean of the two middle ones. Throws Error without
// values.
double median(std::vector<double> values);

}  // namespace cnn
