#include "bench/flags/manual_page.h"

#include <fmt/format.h>

#include "bench/flags/flag_table.h"
#include "bench/flags/help_parts.h"

namespace cnn::bench {
namespace {

// Escapes the syntax of roff: backslashes, hyphens that must stay ASCII, and a dot or an apostrophe
// at the start of a line.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  const bool is_request = escaped.starts_with('.') || escaped.starts_with('\'');
  return is_request ? "\\&" + escaped : escaped;
}

std::string tagged(std::string_view bold, std::string_view rest, std::string_view text) {
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(bold), rest, roff(text));
}

std::string entry_of(const Flag& flag) {
  const std::string rest =
      fmt::format(" ({}; default {})", roff(value_text(flag)), roff(default_text(flag)));
  return tagged(fmt::format("--{}", flag.name), rest, description_of(flag));
}

std::string section(std::string_view title, std::span<const HelpEntry> entries) {
  std::string text = fmt::format(".SH {}\n", title);
  for (const HelpEntry& entry : entries) {
    text += tagged(entry.term, "", entry.text);
  }
  return text;
}

std::string flag_sections() {
  std::string text = ".SH FLAGS\n";
  std::string without_effect = ".SH FLAGS WITHOUT EFFECT\n";
  for (const FlagGroup& group : flag_groups()) {
    std::string body;
    for (const Flag& flag : group.flags) {
      (acts(flag) ? body : without_effect) += entry_of(flag);
    }
    text += body.empty() ? "" : fmt::format(".SS {}\n{}", roff(group.title), body);
  }
  return text + without_effect;
}

}  // namespace

std::string manual_page() {
  return ".TH CNN_BENCHMARKS 1\n.ad l\n"
         ".SH NAME\ncnn_benchmarks \\- train convolutional networks and report images/sec\n"
         ".SH SYNOPSIS\n\\fBcnn_benchmarks\\fR [\\fIFLAG\\fR[=\\fIVALUE\\fR]]...\n"
         ".SH DESCRIPTION\n"
         "Times training, inference and evaluation of convolutional networks on CPUs and NVIDIA "
         "GPUs, with the flags and the printed lines of tf_cnn_benchmarks. Flags take one dash or "
         "two; a switch \\fB\\-\\-x\\fR is turned off by \\fB\\-\\-nox\\fR; the last of several "
         "equal flags counts.\n" +
         section("EXAMPLES", help_examples()) + flag_sections() +
         section("EXIT STATUS", exit_statuses()) + section("ENVIRONMENT", environment_variables()) +
         ".SH SEE ALSO\n\\fBcnn_compare\\fR(1), \\fBall_reduce_benchmark\\fR(1), "
         "\\fBmpirun\\fR(1)\n";
}

}  // namespace cnn::bench
