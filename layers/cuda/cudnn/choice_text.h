#pragma once

#include <string>
#include <string_view>

#include "layers/cuda/cudnn/plan.h"

// Choices of engines as text, for files and for other ranks.
namespace cnn::layers::cuda {

// "62\t2=4,13=0\t1024": engine, settings ("-" for none) and bytes of workspace, with tabs between.
std::string choice_fields(const Choice& choice);

// Reads what choice_fields() wrote. Returns false where the text is something else.
bool read_choice_fields(std::string_view text, Choice& into);

}  // namespace cnn::layers::cuda
