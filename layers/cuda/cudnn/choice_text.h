#pragma once

#include <string>
#include <string_view>

#include "layers/cuda/cudnn/plan.h"

// Serialises choices of engines as text, for the plan cache and for other ranks.
namespace cnn::layers::cuda {

// Returns the fields of a choice, separated by tabs: engine, knobs ("-" for none) and workspace in
// bytes, such as "62\t2=4,13=0\t1024".
std::string choice_fields(const Choice& choice);

// Parses a text of choice_fields() into `into`. Returns false if the text is malformed.
bool read_choice_fields(std::string_view text, Choice& into);

}  // namespace cnn::layers::cuda
