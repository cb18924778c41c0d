#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cnn {

// Suggestions for a misspelt name, for error messages.

// Returns the optimal string alignment distance: the number of insertions, deletions, substitutions
// and transpositions of neighbours that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns at most three known names: those that begin with the misspelt one, shortest first, or
// else those at the smallest distance, if at most a third of its letters differ. Case does not
// count. Returns nothing if no name is near.
std::vector<std::string> similar_names(std::string_view misspelt,
                                       std::span<const std::string> known);

// Returns "; did you mean a, b?" for these suggestions, or nothing without suggestions.
std::string did_you_mean(std::string_view misspelt, std::span<const std::string> known);

}  // namespace cnn
