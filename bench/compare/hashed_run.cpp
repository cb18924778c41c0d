#include "bench/compare/hashed_run.h"

#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <system_error>

#include "bench/compare/run.h"
#include "data/json/parse_json.h"
#include "runtime/error.h"
#include "runtime/tensor_hash.h"

namespace cnn::compare {
namespace {

constexpr std::string_view form = "cnn_benchmarks tensor hashes ";
constexpr std::string_view newest_form = "1";

std::vector<std::string_view> split_at_tabs(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t tab = line.find('\t');
    words.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) {
      return words;
    }
    line.remove_prefix(tab + 1);
  }
}

std::uint64_t combined(const std::vector<HashedStep::Entry>& entries) {
  std::uint64_t hash = 0;
  for (const HashedStep::Entry& entry : entries) {
    hash = combine_hash(combine_hash(hash, entry.tensor), entry.hash);
  }
  return hash;
}

// Reads a file line by line.
class Reader {
 public:
  Reader(const std::string& path, std::string_view text) : text_(text) { run_.path = path; }

  HashedRun read() {
    check_form();
    while (next_line()) {
      take();
    }
    if (run_.steps.empty()) {
      refuse(step_ ? "cut off before the end of its first step"
                   : "no steps: did the run end before the first that --hash_steps asks for?");
    }
    run_.cut_off = step_open_;
    return std::move(run_);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(fmt::format("{}: {}", run_.path, why));
  }
  [[noreturn]] void refuse_line() const {
    refuse(
        fmt::format("damaged in line {}; it is no file of --hash_file, or was changed", number_));
  }

  // Reads the next line. Ignores a line without a line end, because the run ended while writing it.
  bool next_line() {
    const std::size_t end = text_.find('\n');
    if (end == std::string_view::npos) {
      return false;
    }
    line_ = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    ++number_;
    return true;
  }

  void check_form() {
    if (!next_line() || !line_.starts_with(form)) {
      refuse("no file of cnn_benchmarks --hash_file");
    }
    const std::string_view found = line_.substr(form.size());
    if (found != newest_form) {
      refuse(
          fmt::format("a file of form {}, and this program reads {}; take the cnn_compare of "
                      "the build that wrote it",
                      found, newest_form));
    }
  }

  void take() {
    const std::vector<std::string_view> words = split_at_tabs(line_);
    if (words.front() == "run") {
      take_head();
    } else if (words.front() == "tensor") {
      take_tensor(words);
    } else if (words.front() == "step") {
      take_step(words);
    } else if (words.front() == "end") {
      take_end(words);
    } else {
      take_hash(words);
    }
  }

  void take_head() {
    try {
      run_.head = data::parse_json<nlohmann::json>(line_.substr(line_.find('\t') + 1));
    } catch (const data::JsonError&) {
      refuse_line();
    }
  }

  void take_tensor(const std::vector<std::string_view>& words) {
    constexpr std::size_t columns = 10;
    if (words.size() != columns || number<std::size_t>(words[1]) != run_.tensors.size()) {
      refuse_line();
    }
    run_.tensors.push_back({.key = number<std::uint64_t>(words[2], 16),
                            .node = std::string(words[3]),
                            .output = std::string(words[4]),
                            .op = std::string(words[5]),
                            .name = std::string(words[6]),
                            .shape = std::string(words[7]),
                            .stored = std::string(words[8]),
                            .layer = std::string(words[9])});
  }

  void take_step(const std::vector<std::string_view>& words) {
    if (words.size() != 2 || step_open_) {
      refuse_line();
    }
    step_ = HashedStep{.number = number<std::int64_t>(words[1]), .entries = {}};
    step_open_ = true;
  }

  void take_hash(const std::vector<std::string_view>& words) {
    if (!step_open_ || words.size() != 2) {
      refuse_line();
    }
    const HashedStep::Entry entry{.tensor = number<std::size_t>(words[0]),
                                  .hash = number<std::uint64_t>(words[1], 16)};
    if (entry.tensor >= run_.tensors.size()) {
      refuse_line();
    }
    step_->entries.push_back(entry);
  }

  void take_end(const std::vector<std::string_view>& words) {
    if (!step_open_ || words.size() != 4 || number<std::int64_t>(words[1]) != step_->number ||
        number<std::size_t>(words[2]) != step_->entries.size() ||
        number<std::uint64_t>(words[3], 16) != combined(step_->entries)) {
      refuse_line();
    }
    run_.steps.push_back(*std::move(step_));
    step_.emplace();
    step_open_ = false;
  }

  template <class Number>
  Number number(std::string_view text, int base = 10) const {
    Number value{};
    const auto [end, problem] =
        std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (problem != std::errc() || end != text.data() + text.size()) {
      refuse_line();
    }
    return value;
  }

  HashedRun run_;
  std::string_view text_, line_;
  std::size_t number_ = 0;  // of the line
  std::optional<HashedStep> step_;
  bool step_open_ = false;
};

}  // namespace

HashedRun parse_hashes(const std::string& path, const std::string& text) {
  return Reader(path, text).read();
}

HashedRun read_hashes(const std::string& path) { return parse_hashes(path, read_text(path)); }

}  // namespace cnn::compare
