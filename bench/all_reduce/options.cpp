#include "bench/all_reduce/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <string_view>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

struct OptionRow {
  std::string_view brief, name, help;
  void (*store)(ReduceOptions&, const std::string& word, const std::string& value);
};

[[noreturn]] void refuse(const std::string& word, const std::string& value, std::string_view want) {
  throw Error(fmt::format("{} {}: must be {}", word, value, want));
}

// Parses digits, and K, M or G for powers of 1024.
std::size_t bytes_in(const std::string& word, const std::string& value) {
  constexpr std::string_view units = "KMG";
  std::size_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  unsigned shift = 0;
  if (end - rest == 1) {
    const auto unit = units.find(static_cast<char>(*rest & ~0x20));
    shift = unit == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
  }
  const bool whole = rest == end || shift > 0;
  if (error != std::errc() || !whole || number == 0 || number > SIZE_MAX >> (shift + 8)) {
    refuse(word, value, "a number of bytes such as 8, 64K or 16M");
  }
  return number << shift;
}

int count_in(const std::string& word, const std::string& value, int least) {
  int number = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || rest != end || number < least) {
    refuse(word, value, fmt::format("a whole number from {} on", least));
  }
  return number;
}

bool flag_in(const std::string& word, const std::string& value) {
  if (value != "0" && value != "1" && value != "true" && value != "false") {
    refuse(word, value, "0 or 1");
  }
  return value == "1" || value == "true";
}

constexpr std::array<OptionRow, 13> option_rows{{
    {"-b", "--minbytes", "bytes of the smallest buffer (with K, M, G)",
     [](ReduceOptions& o, const std::string& w, const std::string& v) {
       o.least = bytes_in(w, v);
     }},
    {"-e", "--maxbytes", "bytes of the largest buffer",
     [](ReduceOptions& o, const std::string& w, const std::string& v) { o.most = bytes_in(w, v); }},
    {"-f", "--stepfactor", "from one size to the next (2)",
     [](ReduceOptions& o, const std::string& w, const std::string& v) {
       o.factor = count_in(w, v, 2);
     }},
    {"-i", "--stepbytes", "bytes from one size to the next, instead of a factor",
     [](ReduceOptions& o, const std::string& w, const std::string& v) { o.step = bytes_in(w, v); }},
    {"-n", "--iters", "timed reductions of each size (20)",
     [](ReduceOptions& o, const std::string& w, const std::string& v) {
       o.iterations = count_in(w, v, 1);
     }},
    {"-w", "--warmup_iters", "reductions before these (5)",
     [](ReduceOptions& o, const std::string& w, const std::string& v) {
       o.warm_up = count_in(w, v, 0);
     }},
    {"--iters_per_step", "--iters_per_step", "reductions of all gradients in a timed step (5)",
     [](ReduceOptions& o, const std::string& w, const std::string& v) {
       o.per_step = count_in(w, v, 1);
     }},
    {"-c", "--check", "compare with an independent sum (1)",
     [](ReduceOptions& o, const std::string& w, const std::string& v) { o.check = flag_in(w, v); }},
    {"-d", "--datatype", "float; --comm_wire says what messages carry",
     [](ReduceOptions& /*o*/, const std::string& w, const std::string& v) {
       if (v != "float") {
         refuse(w, v, "float: gradients are, whatever --comm_wire makes of messages");
       }
     }},
    {"-o", "--op", "sum",
     [](ReduceOptions& /*o*/, const std::string& w, const std::string& v) {
       if (v != "sum") {
         refuse(w, v, "sum");
       }
     }},
    {"-J", "--output_file", "write the rows to this JSON file",
     [](ReduceOptions& o, const std::string& /*w*/, const std::string& v) { o.json = v; }},
    {"--memcpy", "--memcpy", "beside each row, copy as many bytes in all ranks at once (1)",
     [](ReduceOptions& o, const std::string& w, const std::string& v) {
       o.copies = flag_in(w, v);
     }},
    {"--compare", "--compare", "mpi: MPI_Allreduce in turn with each reduction",
     [](ReduceOptions& o, const std::string& w, const std::string& v) {
       if (v != "mpi") {
         refuse(w, v, "mpi");
       }
       o.compare = v;
     }},
}};

const OptionRow* find_option(std::string_view word) {
  const auto row = std::ranges::find_if(
      option_rows, [&](const OptionRow& r) { return r.brief == word || r.name == word; });
  return row == option_rows.end() ? nullptr : &*row;
}

// Limits the number of sizes: steps of a few bytes up to gigabytes would need too much memory.
void check_count(const ReduceOptions& options) {
  constexpr std::size_t max_sizes = 10'000;
  if (options.step == 0 || !options.least || !options.most) {
    return;
  }
  const std::size_t count = (*options.most - *options.least) / options.step + 1;
  check(count <= max_sizes,
        fmt::format("-i {} makes {} sizes from -b to -e; take larger steps, for at most {}",
                    options.step, count, max_sizes));
}

}  // namespace

std::vector<std::size_t> ReduceOptions::sizes() const {
  const std::size_t last = most.value_or(least.value_or(4));
  std::vector<std::size_t> all;
  for (std::size_t bytes = least.value_or(last); bytes <= last;) {
    const std::size_t whole = std::max(bytes / sizeof(float), std::size_t{1}) * sizeof(float);
    if (all.empty() || all.back() != whole) {
      all.push_back(whole);
    }
    bytes = step > 0 ? bytes + step : static_cast<std::size_t>(static_cast<double>(bytes) * factor);
  }
  return all;
}

ReduceOptions parse_reduce_options(std::span<const std::string> words) {
  ReduceOptions options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string word = words[i].substr(0, equals);
    const OptionRow* const row = find_option(word);
    if (row == nullptr) {
      options.suite.push_back(words[i]);
      continue;
    }
    const bool bare = word == "--memcpy" && equals == std::string::npos;
    check(bare || equals != std::string::npos || i + 1 < words.size(),
          fmt::format("{} needs a value: {}", word, row->help));
    const std::string value = bare                          ? "1"
                              : equals != std::string::npos ? words[i].substr(equals + 1)
                                                            : words[++i];
    row->store(options, word, value);
  }
  check(!options.least || !options.most || *options.least <= *options.most,
        "-b is larger than -e: there is no size between");
  check_count(options);
  return options;
}

std::string compared_text(const ReduceOptions& options) {
  const auto bytes = [](const std::optional<std::size_t>& size) {
    return size ? std::to_string(*size) : std::string("not set");
  };
  return fmt::format(
      "-b {}\n-e {}\n-f {}\n-i {}\n-n {}\n-w {}\n--iters_per_step={}\n-c {}\n--memcpy={}\n"
      "--compare={}\n",
      bytes(options.least), bytes(options.most), options.factor, options.step, options.iterations,
      options.warm_up, options.per_step, int{options.check}, int{options.copies},
      options.compare.value_or("nothing"));
}

std::vector<std::string> reduce_help() {
  std::vector<std::string> lines{
      "all_reduce_benchmark reduces the gradients of --model as often as cnn_benchmarks' flags "
      "say,",
      "or with -b or -e buffers of these sizes. Beside the flags of cnn_benchmarks it takes:"};
  for (const OptionRow& row : option_rows) {
    const std::string names =
        row.brief == row.name ? std::string(row.name) : fmt::format("{}, {}", row.brief, row.name);
    lines.push_back(fmt::format("  {:<22} {}", names, row.help));
  }
  return lines;
}

}  // namespace cnn::bench
