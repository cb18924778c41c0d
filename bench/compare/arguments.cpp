#include "bench/compare/arguments.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <initializer_list>
#include <map>

#include "runtime/error.h"

namespace cnn::compare {
namespace {

constexpr std::string_view usage =
    R"(cnn_compare BASE.json... -- NEW.json...   is the step of NEW slower than that of BASE?

Takes results of cnn_benchmarks --result_json, several runs a side (five or more); those of several
models or batches are sorted out and judged each. Runs that took turns (--take_turns) are compared
in pairs. Options may stand anywhere:

  --minimum_effect=PERCENT   smaller slowdowns are no regressions (0.5)
  --confidence=PERCENT       of a verdict, one-sided, over all configurations together (99)
  --resolution=PERCENT       "no regression" is said only if this slowdown would have shown (3), or
                             one of --minimum_effect where that is larger
  --across_machines          compare runs of unlike processors or GPUs
  --json[=FILE]              the findings for other tools, in place of the table or into a file
  --markdown[=FILE]          a table for the summary of a CI job, likewise
  --html=FILE                a page that shows the runs
  --help
  --version                  print version and commit

cnn_compare --bits A B   do two runs compute the same bits? Takes files of cnn_benchmarks --hash_file
and names the first step, node and tensor that differ, and how many do, by operation.

cnn_compare --history=FILE   at which commit did the speed change? Takes the file of cnn_benchmarks
--history and finds changes of --minimum_effect or more by E-divisive, with a permutation test that
--confidence is for; --json and --html as above. Exit code: 0 the latest change of no configuration is a
slowdown, 1 of one it is, 2 there are too few runs of one, 3 as below.

cnn_compare --export=FORMAT RUN.json...   prints results for services that draw trends: bencher
(Bencher Metric Format), github-action-benchmark or csv.

  --measure=NAME   of github-action-benchmark: images_per_sec (for customBiggerIsBetter; the default)
                   or step_seconds (customSmallerIsBetter)

Exit code: 0 no regression, 1 regression, 2 cannot tell (and how many more runs would), 3 an error,
or things that cannot be compared. With --bits: 0 equal, 1 different, 3 as above.
)";

struct Word {
  std::string name;
  std::optional<std::string> value;
};

// Splits "--name=value", "--name" or "-name".
Word split(const std::string& word) {
  const std::string text = word.substr(word.starts_with("--") ? 2 : 1);
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return {text, std::nullopt};
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Returns a percentage between two limits as a fraction.
double fraction(const Word& word, double least, double most) {
  const std::string& text = word.value.value();
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(
      problem == std::errc() && end == text.data() + text.size() && value >= least && value <= most,
      fmt::format("--{}={}: wants a percentage from {:g} to {:g}", word.name, text, least, most));
  return value / 100;
}

// Returns the path of an option, which may not be empty.
std::string path_of(const Word& word) {
  check(!word.value->empty(),
        fmt::format("--{}= names no file; give a path, as --{}=FILE", word.name, word.name));
  return *word.value;
}

// Returns the path of a report, or "" for stdout without a value.
std::string path_or_stdout(const Word& word) { return word.value ? path_of(word) : ""; }

enum class Value { none, may, must };
struct Option {
  Value value;
  std::function<void(Arguments&, const Word&)> set;
};

const std::map<std::string, Option, std::less<>>& options() {
  static const std::map<std::string, Option, std::less<>> table{
      {"minimum_effect",
       {Value::must,
        [](Arguments& a, const Word& w) { a.settings.minimum_effect = fraction(w, 0, 100); }}},
      {"confidence",
       {Value::must,
        [](Arguments& a, const Word& w) { a.settings.confidence = fraction(w, 50, 99.9999); }}},
      {"resolution",
       {Value::must,
        [](Arguments& a, const Word& w) { a.settings.resolution = fraction(w, 0.01, 1000); }}},
      {"across_machines",
       {Value::none, [](Arguments& a, const Word&) { a.across_machines = true; }}},
      {"json", {Value::may, [](Arguments& a, const Word& w) { a.json = path_or_stdout(w); }}},
      {"markdown",
       {Value::may, [](Arguments& a, const Word& w) { a.markdown = path_or_stdout(w); }}},
      {"html", {Value::must, [](Arguments& a, const Word& w) { a.html = path_of(w); }}},
      {"bits", {Value::none, [](Arguments& a, const Word&) { a.bits = true; }}},
      {"history", {Value::must, [](Arguments& a, const Word& w) { a.history = path_of(w); }}},
      {"export",
       {Value::must, [](Arguments& a, const Word& w) { a.export_as = export_format(*w.value); }}},
      {"measure",
       {Value::must, [](Arguments& a, const Word& w) { a.measure = measure_of(*w.value); }}},
      {"help", {Value::none, [](Arguments& a, const Word&) { a.help = true; }}},
      {"version", {Value::none, [](Arguments& a, const Word&) { a.version = true; }}},
      {"h", {Value::none, [](Arguments& a, const Word&) { a.help = true; }}},
  };
  return table;
}

// Throws Error for a given option that does not act in this mode of the program.
void check_options(const std::vector<std::string>& given, std::string_view mode,
                   std::initializer_list<std::string_view> acting) {
  for (const std::string& name : given) {
    check(std::ranges::find(acting, name) != acting.end(),
          fmt::format("--{} does not act with --{}; leave it out", name, mode));
  }
}

// With --bits each side has one file, and a separator is optional.
void take_two_files(Arguments& arguments, const std::vector<std::string>& given) {
  std::vector<std::string> files = arguments.base;
  files.insert(files.end(), arguments.candidate.begin(), arguments.candidate.end());
  check(files.size() == 2, fmt::format("--bits compares two files of --hash_file, not {}: "
                                       "cnn_compare --bits A B",
                                       files.size()));
  check(!arguments.json && !arguments.markdown && !arguments.html,
        "--bits prints its finding; --json, --markdown and --html are for result files");
  check_options(given, "bits", {"bits"});
  arguments.base = {files.front()};
  arguments.candidate = {files.back()};
}

void check_history(const Arguments& arguments, const std::vector<std::string>& given) {
  check(arguments.base.empty() && arguments.candidate.empty() && !arguments.export_as,
        "--history=FILE stands alone; its runs are in that file");
  check(!arguments.markdown, "--history has no --markdown; there are --json and --html");
  check_options(given, "history",
                {"history", "minimum_effect", "confidence", "across_machines", "json", "html"});
}

void check_measure(const Arguments& arguments, const std::vector<std::string>& given) {
  const bool acts = arguments.export_as == ExportFormat::github_action_benchmark;
  check(acts || std::ranges::find(given, "measure") == given.end(),
        "--measure acts with --export=github-action-benchmark only; leave it out");
}

void check_export(const Arguments& arguments, const std::vector<std::string>& given) {
  check(!arguments.base.empty() && arguments.candidate.empty(),
        "--export takes result files of one side: cnn_compare --export=FORMAT RUN.json...");
  check(!arguments.json && !arguments.markdown && !arguments.html,
        "--export prints its format; --json, --markdown and --html are for comparisons");
  check_options(given, "export", {"export", "measure"});
  check_measure(arguments, given);
}

void check_comparison(const Arguments& arguments, const std::vector<std::string>& given) {
  check_measure(arguments, given);
  check(arguments.json != "" || arguments.markdown != "",
        "--json and --markdown would both print to stdout; give one a file, as --markdown=FILE");
}

}  // namespace

Arguments parse_arguments(std::span<const std::string> words) {
  Arguments arguments;
  std::vector<std::string> given;  // names of options
  std::vector<std::string>* side = &arguments.base;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      check(side == &arguments.base, "more than one -- : there are two sides, BASE... -- NEW...");
      side = &arguments.candidate;
    } else if (words[i].empty()) {
      throw Error("an empty word is no file; was a variable of the shell empty?");
    } else if (words[i].size() < 2 || words[i].front() != '-') {
      side->push_back(words[i]);
    } else {
      Word word = split(words[i]);
      const auto option = options().find(word.name);
      check(option != options().end(),
            fmt::format("no option {}; cnn_compare --help lists them", words[i]));
      const Value wants = option->second.value;
      check(wants != Value::none || !word.value, fmt::format("--{} takes no value", word.name));
      if (wants == Value::must && !word.value) {
        check(i + 1 < words.size(), fmt::format("--{} wants a value", word.name));
        word.value = words[++i];
      }
      option->second.set(arguments, word);
      given.push_back(word.name);
    }
  }
  if (arguments.help || arguments.version) {  // these print a text and end the program
    return arguments;
  }
  if (arguments.bits) {
    take_two_files(arguments, given);
    return arguments;
  }
  if (arguments.history) {
    check_history(arguments, given);
    return arguments;
  }
  if (arguments.export_as) {
    check_export(arguments, given);
    return arguments;
  }
  check(side == &arguments.candidate,
        "which are the new runs? BASE.json... -- NEW.json... (cnn_compare --help)");
  check_comparison(arguments, given);
  return arguments;
}

std::string_view help_text() { return usage; }

}  // namespace cnn::compare
