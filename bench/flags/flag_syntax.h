#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cnn::bench {

// The command line by the rules of absl's flag library, which the original uses.
struct Arguments {
  std::vector<std::pair<std::string, std::string>> flags;  // name and value, in order, repeats kept
  std::vector<std::string> positional;                     // from the first word that is no flag
};

// Replaces each --flagfile by the lines of its file, recursively. In a file, blank lines and lines
// beginning with # or // do not count. Throws Error if a file cannot be read or nests too deeply.
std::vector<std::string> expand_flag_files(std::span<const std::string> words);

// Sorts words without flag files into flags and the rest: --x=v, --x v, --x and --nox for switches,
// one dash or two. Throws Error("FATAL Flags parsing error: ...") for an unknown flag that
// --undefok does not name, with names that were probably meant.
Arguments read_arguments(std::span<const std::string> words);

// The known flags closest to a misspelt one, or that begin with it; often none, at most three.
std::vector<std::string> similar_flags(std::string_view misspelt);

}  // namespace cnn::bench
