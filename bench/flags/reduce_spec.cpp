#include "bench/flags/reduce_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>

#include "runtime/error.h"
#include "runtime/spelling.h"

namespace cnn::bench {
namespace {

// Upstream's names, then ours.
constexpr std::array<std::string_view, 17> known_algorithms{
    "nccl",     "nccl/xring",  "nccl/rechd", "nccl/pscpu", "xring", "pscpu",
    "psgpu",    "pscpu/pscpu", "collective", "auto",       "ring",  "direct",
    "weighted", "rd",          "hd",         "tree",       "shm"};

std::vector<std::string> cut(std::string_view text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

template <class Number>
std::optional<Number> positive(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number > 0 ? std::optional(number) : std::nullopt;
}

// Parses digits with K, M, G or T for powers of 1024.
std::optional<std::int64_t> limit_of(std::string_view text) {
  constexpr std::string_view units = "kMGT";
  unsigned shift = 0;
  if (!text.empty()) {
    const char last = text.back() == 'K' ? 'k' : text.back();
    if (const auto unit = units.find(last); unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      text.remove_suffix(1);
    }
  }
  const std::optional<std::int64_t> number = positive<std::int64_t>(text);
  if (!number || *number > std::numeric_limits<std::int64_t>::max() >> shift) {
    return std::nullopt;
  }
  return *number << shift;
}

std::string in(const std::string& spec) { return "all_reduce_spec (" + spec + ") contains "; }

int number_in(const std::string& spec, const std::string& text, const char* what) {
  const std::optional<int> number = positive<int>(text);
  check(number.has_value(), in(spec) + "non-integer " + what + " " + text);
  return *number;
}

AlgorithmSpec parse_part(const std::string& spec, const std::string& part) {
  AlgorithmSpec algorithm;
  std::size_t at = part.find_first_of("#@%");
  algorithm.name = part.substr(0, at);
  const std::vector<std::string> known(known_algorithms.begin(), known_algorithms.end());
  check(std::ranges::find(known, algorithm.name) != known.end(),
        in(spec) + "invalid alg " + part + did_you_mean(algorithm.name, known));
  while (at != std::string::npos) {
    const std::size_t end = part.find_first_of("#@%", at + 1);
    const std::string text = part.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    if (part[at] == '#') {
      algorithm.shards = number_in(spec, text, "shards");
    } else if (part[at] == '%') {
      algorithm.chunks = number_in(spec, text, "chunks");
    } else {
      for (const std::string& size : cut(text, 'x')) {
        algorithm.dims.push_back(number_in(spec, size, "dimension"));
      }
    }
    at = end;
  }
  check(algorithm.name != "collective" || algorithm.shards <= 2,
        in(spec) + part + ": collective has at most 2 shards");
  const bool has_dims =
      algorithm.name == "ring" || algorithm.name == "xring" || algorithm.name == "direct";
  check(algorithm.dims.empty() || has_dims,
        in(spec) + part + ": only ring, xring and direct have dimensions");
  return algorithm;
}

}  // namespace

std::vector<AlgorithmSpec> parse_reduce_spec(const std::string& spec) {
  const std::vector<std::string> parts = cut(spec, ':');
  check(parts.size() % 2 == 1, "all_reduce_spec not well formed: " + spec);
  std::vector<AlgorithmSpec> algorithms;
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    algorithms.push_back(parse_part(spec, parts[i]));
    if (i + 1 < parts.size()) {
      algorithms.back().most = limit_of(parts[i + 1]);
      check(algorithms.back().most.has_value(), in(spec) + "non-integer range " + parts[i + 1]);
    }
  }
  return algorithms;
}

std::vector<int> parse_dims(const std::string& text) {
  std::vector<int> dims;
  for (const std::string& size : cut(text, 'x')) {
    const std::optional<int> number = positive<int>(size);
    check(number.has_value(), "--comm_topology=" + text +
                                  " is no grid of ranks: sizes with an x between them, the ranks "
                                  "of a host first, such as 4x8");
    dims.push_back(*number);
  }
  return dims;
}

}  // namespace cnn::bench
