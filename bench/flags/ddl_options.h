#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cnn::bench {

// How IBM's library was told to reduce: -mode LETTER:AxBxC, ranks of a host first.
struct DdlMode {
  char letter = 'p';      // b, p: the fastest; r, n: rings; c: direct exchange
  std::vector<int> dims;  // empty: all ranks are one dimension
};

// Reads --ddl_options or, where that is empty, DDL_OPTIONS: "-mode p:6x2x1x1 -dump_iter 100".
// notices: a line for each option that has no meaning here. Throws Error that names the option
// which IBM's library does not have or whose value is wrong, or the dimensions that are not of
// `ranks` ranks.
DdlMode read_ddl_options(std::string_view text, int ranks, std::vector<std::string>& notices);

}  // namespace cnn::bench
