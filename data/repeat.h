#pragma once

#include <memory>

#include "data/dataset.h"

namespace cnn::data {

// The first example of a data set, read once and given for every index: takes the disk out of a
// measurement. Size, format and classes stay.
std::unique_ptr<Dataset> repeat_first(std::unique_ptr<Dataset> dataset);

}  // namespace cnn::data
