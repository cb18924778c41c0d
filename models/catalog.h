#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace cnn::models {

// Every model, in the order of data sets imagenet, cifar10, mnist.
const std::vector<Model>& all();

// Returns the names of a data set's models, separated by ", "; empty for an unknown data set.
std::string names(std::string_view data_set);

// Returns the model of that name. Throws Error with the known names.
const Model& find(std::string_view data_set, std::string_view name);

}  // namespace cnn::models
