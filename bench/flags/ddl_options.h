#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cnn::bench {

// The reduction mode of IBM's DDL library: -mode LETTER:AxBxC, ranks of a host first.
struct DdlMode {
  char letter = 'p';      // b, p: the fastest; r, n: rings; c: direct exchange
  std::vector<int> dims;  // empty: one dimension of all ranks
};

// Parses --ddl_options or, if that is empty, DDL_OPTIONS: "-mode p:6x2x1x1 -dump_iter 100".
// notices: a line for each option without meaning here. Throws Error with an option that IBM's
// library lacks or whose value is wrong, or with dimensions that do not match `ranks`.
DdlMode read_ddl_options(std::string_view text, int ranks, std::vector<std::string>& notices);

}  // namespace cnn::bench
