#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cnn::bench {

// The command line, split by the rules of absl's flag library, which upstream uses.
struct Arguments {
  std::vector<std::pair<std::string, std::string>> flags;  // name and value, in order, repeats kept
  std::vector<std::string> positional;                     // from the first word that is not a flag
};

// Replaces each --flagfile by the lines of its file, recursively. Skips blank lines and lines
// beginning with # or // in files. Throws Error if a file is unreadable or nests too deeply.
std::vector<std::string> expand_flag_files(std::span<const std::string> words);

// Splits words without flag files into flags and the rest: --x=v, --x v, --x and --nox for
// switches, one dash or two. Throws Error("FATAL Flags parsing error: ...") with similar names for
// an unknown flag that --undefok does not name.
Arguments read_arguments(std::span<const std::string> words);

// Returns up to three known flags that are closest to a misspelt one, or that begin with it; first
// those that lack one of its words.
std::vector<std::string> similar_flags(std::string_view misspelt);

}  // namespace cnn::bench
