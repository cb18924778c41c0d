// Implements cnn_compare, which gives a verdict on result files or on hashes of tensors. The
// program links no engine, no device and no library of either.
#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/compare/arguments.h"
#include "bench/compare/bits.h"
#include "bench/compare/configurations.h"
#include "bench/compare/exports.h"
#include "bench/compare/history.h"
#include "bench/compare/output_files.h"
#include "bench/compare/run.h"
#include "bench/compare/tables.h"
#include "bench/compare/verdict.h"
#include "bench/page/page.h"
#include "bench/version/version_lines.h"
#include "runtime/error.h"
#include "runtime/resource_limits.h"

namespace {

using namespace cnn::compare;

constexpr int exit_error = 3;

std::vector<Run> read_runs(const std::vector<std::string>& paths) {
  std::vector<Run> runs;
  runs.reserve(paths.size());
  for (const std::string& path : paths) {
    runs.push_back(read_run(path));
  }
  return runs;
}

// Returns why the latest write failed, if the system gives a reason.
std::string reason() { return errno == 0 ? "" : ": " + cnn::write_problem_text(errno); }

void write_file(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  cnn::check(file.good(), path + ": cannot be written" + reason());
}

// Writes to the file, or to stdout if the path is empty.
void put(const std::string& path, const std::string& text) {
  if (!path.empty()) {
    write_file(path, text);
    return;
  }
  errno = 0;
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
                     std::fflush(stdout) == 0;  // the reason is known from here on
  cnn::check(whole, "stdout: cannot be written" + reason());
}

void report(const Arguments& arguments, const std::vector<Finding>& findings) {
  const bool replaces_table = (arguments.json && arguments.json->empty()) ||
                              (arguments.markdown && arguments.markdown->empty());
  if (!replaces_table) {
    put("", terminal_text(findings, arguments.settings));
  }
  if (arguments.markdown) {
    put(*arguments.markdown, markdown_text(findings, arguments.settings));
  }
  if (arguments.json) {
    put(*arguments.json, json_text(findings, arguments.settings));
  }
}

int compare_two_bit_by_bit(const Arguments& arguments) {
  const HashedRun a = read_hashes(arguments.base.front());
  const HashedRun b = read_hashes(arguments.candidate.front());
  const BitComparison comparison = compare_bits(a, b);
  put("", bits_text(a, b, comparison));
  return exit_code_of(comparison);
}

int look_at_history(const Arguments& arguments) {
  History history = read_history(*arguments.history);
  for (const std::string& problem : history.problems) {
    fmt::print(stderr, "cnn_compare: {}\n", problem);
  }
  const std::vector<Series> all =
      find_history(std::move(history.runs), arguments.settings, arguments.across_machines);
  if (!arguments.json || !arguments.json->empty()) {
    put("", history_text(all, arguments.settings));
  }
  if (arguments.json) {
    put(*arguments.json, history_json(all, arguments.settings));
  }
  if (arguments.html) {
    write_file(*arguments.html, cnn::page::history_page(all, arguments.settings));
  }
  return exit_code_of(all);
}

int compare_files(const std::vector<std::string>& words) {
  const Arguments arguments = parse_arguments(words);
  if (arguments.help) {
    put("", std::string(help_text()));
    return 0;
  }
  if (arguments.version) {
    std::string text;
    for (const std::string& line : cnn::bench::version_lines("cnn_compare")) {
      text += line + "\n";
    }
    put("", text);
    return 0;
  }
  check_output_files(arguments);
  if (arguments.bits) {
    return compare_two_bit_by_bit(arguments);
  }
  if (arguments.history) {
    return look_at_history(arguments);
  }
  if (arguments.export_as) {
    put("", export_text(read_runs(arguments.base), *arguments.export_as, arguments.measure));
    return 0;
  }
  const std::vector<Configuration> configurations = find_configurations(
      read_runs(arguments.base), read_runs(arguments.candidate), arguments.across_machines);
  const std::vector<Finding> findings = judge(configurations, arguments.settings);
  report(arguments, findings);
  if (arguments.html) {
    write_file(*arguments.html,
               cnn::page::comparison_page(configurations, findings, arguments.settings));
  }
  return exit_code_of(findings);
}

}  // namespace

int main(int argc, char** argv) {
  cnn::make_file_limit_an_error();
  try {
    return compare_files({argv + (argc > 0 ? 1 : 0), argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "cnn_compare: {}\n", cnn::failure_text(error));
    return exit_error;
  }
}
