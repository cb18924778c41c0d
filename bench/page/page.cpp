#include "bench/page/page.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "bench/compare/tables.h"
#include "bench/page/chart.h"
#include "bench/page/heading.h"
#include "bench/page/run_sections.h"
#include "bench/page/style.h"
#include "bench/page/tiles.h"
#include "data/json/parse_json.h"

namespace cnn::page {
namespace {

using compare::bounds_text;
using compare::Configuration;
using compare::Finding;
using compare::percent;
using compare::Settings;
using compare::Side;
using compare::Verdict;

// first: figures that precede the others.
std::string sections_of(const std::string& first, std::span<const ShownRun> runs,
                        bool in_turns = false) {
  return "<main>\n" + first + step_section(runs, in_turns) + loss_section(runs) +
         evaluation_section(runs) + simulation_section(runs) + lane_section(runs) +
         memory_section(runs) + bound_section(runs) + operation_section(runs) +
         machine_section(runs) + "</main>\n";
}

// Returns the bounds that determine the axis, in per cent. A practically infinite upper bound ends
// where the estimate is still visible, and is drawn as an arrow.
std::pair<double, double> shown_bounds(const compare::Difference& difference, double confidence) {
  const double most = std::max(200.0, percent(difference.estimate) + 100);
  return {percent(difference.lower(confidence)),
          std::min(percent(difference.upper(confidence)), most)};
}

// Draws the effect on each configuration, in per cent of its step time.
std::string effect_chart(const std::vector<Finding>& findings, const Settings& settings) {
  std::vector<double> values{-1, 1, 100 * settings.minimum_effect};
  std::vector<std::string> names;
  for (const Finding& finding : findings) {
    names.push_back(finding.label.substr(0, finding.label.find(',')));
    values.push_back(percent(finding.difference.estimate));
    if (std::isfinite(finding.difference.error)) {
      const auto [lower, upper] = shown_bounds(finding.difference, settings.confidence);
      values.insert(values.end(), {lower, upper});
    }
  }
  Chart chart(
      {fmt::format("Change of the step time, with {:g} % bounds", 100 * settings.confidence),
       "% (right: slower)", ""},
      range_of(values, false), names);
  chart.upright(0, "rule", "as before");
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const compare::Difference& difference = findings[i].difference;
    const double middle = static_cast<double>(i) + 0.5;
    if (std::isfinite(difference.error)) {
      chart.span(
          {percent(difference.lower(settings.confidence)),
           percent(difference.upper(settings.confidence))},
          middle, "b",
          fmt::format("{}: {}", findings[i].label, bounds_text(difference, settings.confidence)));
    }
    chart.dot(percent(difference.estimate), middle, "b",
              fmt::format("{}: {:+.2f} %", findings[i].label, percent(difference.estimate)));
  }
  return chart.svg();
}

void add_side(Chart& chart, const Side& side, double row, const char* style, double images) {
  for (std::size_t i = 0; i < side.runs.size(); ++i) {
    chart.dot(
        images / side.runs[i].seconds, row,
        side.counts[i] ? style : fmt::format("{} disturbed", style),
        fmt::format("run {}: {:.2f} images/sec, {} of {} steps disturbed", i + 1,
                    images / side.runs[i].seconds, side.runs[i].disturbed, side.runs[i].steps));
  }
  chart.bar({side.images_per_sec, side.images_per_sec}, {row - 0.3, row + 0.3}, style,
            fmt::format("mean: {:.2f} images/sec", side.images_per_sec));
}

std::string speed_chart(const Configuration& configuration, const Finding& finding) {
  const double images = configuration.base.front().images_per_step;
  std::vector<double> speeds;
  for (const Side* side : {&finding.base, &finding.candidate}) {
    for (const compare::RunSummary& run : side->runs) {
      speeds.push_back(images / run.seconds);
    }
  }
  Chart chart({"Speed of each run (hollow: does not count)", "images/sec", ""},
              range_of(speeds, false), std::vector<std::string>{"base", "new"});
  add_side(chart, finding.base, 0.5, "a", images);
  add_side(chart, finding.candidate, 1.5, "b", images);
  return chart.svg();
}

// Returns nothing unless runs took turns.
std::string pair_chart(const Finding& finding) {
  if (!finding.difference.paired) {
    return {};
  }
  std::vector<double> numbers, values{0};
  for (const double slowdown : finding.slowdowns) {
    numbers.push_back(static_cast<double>(numbers.size() + 1));
    values.push_back(percent(slowdown));
  }
  Chart chart({"Change of the step time in each pair that counts", "pair", "%"},
              range_of(numbers, false), range_of(values, false));
  chart.level(0, "rule", "as before", Chart::End::left);
  const double mean = percent(finding.difference.estimate);
  chart.level(mean, "rule b", fmt::format("mean {:+.2f} %", mean));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    chart.dot(numbers[i], values[i + 1], "b",
              fmt::format("pair {}: {:+.2f} %", i + 1, values[i + 1]));
  }
  return chart.svg();
}

// Returns the run to show: the first counted one.
const compare::Run& shown_of(const std::vector<compare::Run>& runs, const Side& side) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (side.counts.size() == runs.size() && side.counts[i]) {
      return runs[i];
    }
  }
  return runs.front();
}

// Returns the run that took turns with the base's, if runs took turns.
const compare::Run& beside(const compare::Run& base, const std::vector<compare::Run>& candidate,
                           const Finding& finding) {
  const auto partner = std::ranges::find(candidate, base.turns, &compare::Run::turns);
  return finding.difference.paired && partner != candidate.end()
             ? *partner
             : shown_of(candidate, finding.candidate);
}

std::string configuration_part(const Configuration& configuration, const Finding& finding,
                               const Settings& settings) {
  const char* style = finding.verdict == Verdict::regression    ? "regression"
                      : finding.verdict == Verdict::improvement ? "improvement"
                                                                : "";
  std::string text = fmt::format("<h2>{}</h2>\n<p class=\"{}\">{}</p>\n", escaped(finding.label),
                                 style, escaped(sentence(finding, settings)));
  for (const std::string& note : finding.notes) {
    text += fmt::format("<p><small>{}</small></p>\n", escaped(note));
  }
  const compare::Run& base = shown_of(configuration.base, finding.base);
  const Json& candidate = beside(base, configuration.candidate, finding).json;
  for (const auto& [name, json] : {std::pair("base", &base.json), std::pair("new", &candidate)}) {
    text += fmt::format("<p><small>{}, the run shown: {}</small></p>\n", name,
                        escaped(heading_of(*json)));
  }
  const ShownRun shown[] = {{"base", "a", &base.json}, {"new", "b", &candidate}};
  return text + sections_of(speed_chart(configuration, finding) + pair_chart(finding), shown,
                            finding.difference.paired);
}

}  // namespace

std::string comparison_page(const std::vector<Configuration>& configurations,
                            const std::vector<Finding>& findings, const Settings& settings) {
  std::string body =
      "<h1>Is it slower than before?</h1>\n<p><span class=\"key a\">base</span> "
      "<span class=\"key b\">new</span></p>\n<main>\n";
  body += effect_chart(findings, settings) + "<figure><figcaption>Verdicts</figcaption>\n";
  for (const Finding& finding : findings) {
    body += fmt::format("<p><b>{}</b>: {}</p>\n", escaped(finding.label),
                        escaped(sentence(finding, settings)));
  }
  body += "</figure>\n</main>\n";
  for (std::size_t i = 0; i < findings.size(); ++i) {
    body += configuration_part(configurations[i], findings[i], settings);
  }
  return document("cnn_compare", body);
}

std::string run_page(const std::string& result_text) {
  const auto json = data::parse_json<Json>(result_text);
  std::string body = fmt::format("<h1>{}</h1>\n", escaped(title_of(json))) +
                     fmt::format("<p>{}</p>\n", escaped(heading_of(json)));
  for (const std::string& problem : problems_of(json)) {
    body += fmt::format("<p class=\"regression\">{}</p>\n", escaped(problem));
  }
  if (const std::string answer = search_answer(json); !answer.empty()) {
    body += fmt::format("<p>{}</p>\n", escaped(answer));
  }
  const ShownRun only[] = {{"run", "a", &json}};
  return document(title_of(json), body + tiles_of(json) + sections_of("", only));
}

}  // namespace cnn::page
