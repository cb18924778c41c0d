#include "bench/flags/ddl_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

// Options for reports, tuning and debugging of IBM's library.
constexpr std::array<std::string_view, 4> idle_ddl_options{"-dump_iter", "-dev_sync",
                                                           "-rebind_iter", "-dbg_level"};

std::vector<int> read_ddl_dims(std::string_view text, std::string_view mode) {
  std::vector<int> dims;
  while (true) {
    const std::string_view number = text.substr(0, text.find('x'));
    int size = 0;
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), size);
    check(error == std::errc() && stop == number.data() + number.size() && size > 0,
          fmt::format("--ddl_options: -mode {}: dimensions are numbers with x between, such as 4x2",
                      mode));
    dims.push_back(size);
    if (number.size() == text.size()) {
      return dims;
    }
    text.remove_prefix(number.size() + 1);
  }
}

DdlMode read_ddl_mode(const std::string& mode, int ranks) {
  constexpr std::string_view letters = "bnrmcp";
  check(!mode.empty() && letters.find(mode.front()) != std::string_view::npos &&
            (mode.size() == 1 || mode[1] == ':'),
        fmt::format("--ddl_options: -mode {}: it is one of b, n, r, m, c and p, then a colon and "
                    "dimensions: p:4x2",
                    mode));
  check(
      mode.front() != 'm',
      fmt::format("--ddl_options: -mode {}: use --comm_backend=mpi, which lets MPI add up", mode));
  DdlMode result{.letter = mode.front()};
  if (mode.size() < 2) {
    return result;
  }
  result.dims = read_ddl_dims(std::string_view(mode).substr(2), mode);
  std::int64_t product = 1;
  for (const int size : result.dims) {
    // Saturates for any number of factors.
    product = std::min(product * size, std::int64_t{1} << 31U);
  }
  check(product == ranks,
        fmt::format("--ddl_options: -mode {}: invalid dim size={} usr_size={}: {} make {} ranks, "
                    "and there are {}",
                    mode, result.dims.size(), ranks, fmt::join(result.dims, "x"), product, ranks));
  std::erase(result.dims, 1);
  return result;
}

}  // namespace

DdlMode read_ddl_options(std::string_view text, int ranks, std::vector<std::string>& notices) {
  DdlMode result;
  std::istringstream words{std::string(text)};
  for (std::string word, value; words >> word;) {
    value.clear();
    words >> value;
    if (word == "-mode" || word == "-m") {
      result = read_ddl_mode(value, ranks);
    } else {
      check(std::ranges::find(idle_ddl_options, word) != idle_ddl_options.end(),
            fmt::format("--ddl_options: there is no option {}; use -mode, {}", word,
                        fmt::join(idle_ddl_options, ", ")));
      notices.push_back(fmt::format("--ddl_options: {} {} has no effect here", word, value));
    }
  }
  return result;
}

}  // namespace cnn::bench
