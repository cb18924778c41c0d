#pragma once

#include <memory>

#include "data/dataset.h"

namespace cnn::data {

// Returns a decorator that reads the first example of a data set once and returns it for every
// index, to measure without the disk. Size, format and classes are those of the data set.
std::unique_ptr<Dataset> repeat_first(std::unique_ptr<Dataset> dataset);

}  // namespace cnn::data
