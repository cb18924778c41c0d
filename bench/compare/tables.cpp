#include "bench/compare/tables.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cnn::compare {
namespace {

using Row = std::vector<std::string>;

// Formats a probability: 0.012, < 0.0001.
std::string p_text(double p) {
  constexpr double least = 1e-4;
  return p < least ? "< 0.0001" : fmt::format("{:.4f}", p);
}

std::string runs_text(const Finding& finding) {
  const std::size_t base = finding.base.counted(), candidate = finding.candidate.counted();
  return finding.difference.paired ? fmt::format("{} pairs", base)
                                   : fmt::format("{} + {}", base, candidate);
}

// Two noisy runs bound almost nothing; astronomic figures would look like errors.
std::string bound_text(double log_difference) {
  constexpr double most = 999;
  const double bound = percent(log_difference);
  return bound > most ? fmt::format("over {:+.0f}", most) : fmt::format("{:+.2f}", bound);
}

Row titles_of(const Settings& settings) {
  return {"configuration", "runs",      "base img/s",
          "new img/s",     "step time", fmt::format("{:g} % bounds", 100 * settings.confidence),
          "p (slower)",    "verdict"};
}

Row cells_of(const Finding& finding, const Settings& settings) {
  return {finding.label,
          runs_text(finding),
          fmt::format("{:.2f}", finding.base.images_per_sec),
          fmt::format("{:.2f}", finding.candidate.images_per_sec),
          fmt::format("{:+.2f} %", percent(finding.difference.estimate)),
          bounds_text(finding.difference, settings.confidence),
          std::isinf(finding.difference.error) ? "unknown" : p_text(finding.p_slower),
          std::string(name_of(finding.verdict))};
}

// Returns the standard deviation of the runs around their side's mean; of pairs, of their
// differences.
double scatter_of(const Finding& finding) {
  return percent(std::max(finding.difference.base_deviation, finding.difference.new_deviation));
}

// Returns the number of missing runs as the end of a sentence.
std::string more_runs_text(const Finding& finding) {
  const std::string unit = finding.difference.paired ? "pairs" : "runs a side";
  return finding.more_runs
             ? fmt::format("needs about {} more {}", *finding.more_runs, unit)
             : fmt::format("needs more than 200 {}: a quieter machine is needed", unit);
}

std::string inconclusive_sentence(const Finding& finding, const Settings& settings) {
  const std::string more = more_runs_text(finding);
  if (finding.one_side_disturbed) {
    return fmt::format(
        "cannot tell: other work or throttling disturbed most runs of one side only; {}{}", more,
        finding.more_runs ? " on a quiet machine" : "");
  }
  if (std::isinf(finding.difference.error)) {
    const bool both = finding.base.counted() < 2 && finding.candidate.counted() < 2;
    return fmt::format("cannot tell from a single run {}; {}", both ? "a side" : "on one side",
                       more);
  }
  return fmt::format(
      "cannot tell: {} scatter by {:.1f} %, so that {:g} % more step time could "
      "hide; {}",
      finding.difference.paired ? "differences of pairs" : "runs", scatter_of(finding),
      100 * excluded_slowdown(settings), more);
}

// Returns a row of a Markdown table; a bar within a cell would begin another cell.
std::string markdown_row(const Row& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) {
    text += ' ';
    for (const char letter : cell) {
      text += letter == '|' ? std::string("\\|") : std::string(1, letter);
    }
    text += " |";
  }
  return text + "\n";
}

Json or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json percents(const std::vector<double>& log_differences) {
  Json values = Json::array();
  for (const double each : log_differences) {
    values.push_back(percent(each));
  }
  return values;
}

Json side_json(const Side& side) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < side.runs.size(); ++i) {
    runs.push_back({{"seconds", side.runs[i].seconds},
                    {"steps", side.runs[i].steps},
                    {"disturbed_steps", side.runs[i].disturbed},
                    {"counts", bool(side.counts[i])}});
  }
  return {{"step_seconds", side.seconds}, {"images_per_sec", side.images_per_sec}, {"runs", runs}};
}

}  // namespace

std::string bounds_text(const Difference& difference, double confidence) {
  return std::isinf(difference.error)
             ? "unknown"
             : fmt::format("{} to {} %", bound_text(difference.lower(confidence)),
                           bound_text(difference.upper(confidence)));
}

std::string sentence(const Finding& finding, const Settings& settings) {
  const Difference& difference = finding.difference;
  const double sure = 100 * settings.confidence;
  switch (finding.verdict) {
    case Verdict::regression:
      return fmt::format(
          "regression: a step takes {:.2f} % longer, with {:g} % confidence at "
          "least {:.2f} %",
          percent(difference.estimate), sure, percent(difference.lower(settings.confidence)));
    case Verdict::improvement:
      return fmt::format(
          "improvement: a step takes {:.2f} % less, with {:g} % confidence at "
          "least {:.2f} %",
          -percent(difference.estimate), sure, -percent(difference.upper(settings.confidence)));
    case Verdict::no_regression:
      return fmt::format(
          "no regression: with {:g} % confidence a step takes at most {:.2f} % "
          "longer",
          sure, percent(std::max(0.0, difference.upper(settings.confidence))));
    case Verdict::inconclusive:
      break;
  }
  return inconclusive_sentence(finding, settings);
}

std::string terminal_text(const std::vector<Finding>& findings, const Settings& settings) {
  std::vector<Row> rows{titles_of(settings)};
  for (const Finding& finding : findings) {
    rows.push_back(cells_of(finding, settings));
  }
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_text = i == 0 || i + 1 == row.size();
      line += is_text ? fmt::format("{:<{}}  ", row[i], widths[i])
                      : fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  for (const Finding& finding : findings) {
    text += fmt::format("\n{}\n  {}\n", finding.label, sentence(finding, settings));
    for (const std::string& note : finding.notes) {
      text += "  " + note + "\n";
    }
  }
  return text;
}

std::string markdown_text(const std::vector<Finding>& findings, const Settings& settings) {
  const Row titles = titles_of(settings);
  std::string text = markdown_row(titles) + "|---|" + [&titles] {
    std::string rule;
    for (std::size_t i = 2; i < titles.size(); ++i) {
      rule += "---:|";
    }
    return rule + "---|\n";
  }();
  for (const Finding& finding : findings) {
    Row row = cells_of(finding, settings);
    if (finding.verdict == Verdict::regression) {
      row.back() = "**regression**";
    }
    text += markdown_row(row);
  }
  for (const Finding& finding : findings) {
    text += fmt::format("\n**{}**: {}\n", finding.label, sentence(finding, settings));
    for (const std::string& note : finding.notes) {
      text += fmt::format("- {}\n", note);
    }
  }
  return text;
}

std::string json_text(const std::vector<Finding>& findings, const Settings& settings) {
  Json all = Json::array();
  for (const Finding& finding : findings) {
    const Difference& difference = finding.difference;
    all.push_back({{"configuration", finding.label},
                   {"verdict", name_of(finding.verdict)},
                   {"paired", difference.paired},
                   {"slower_percent", percent(difference.estimate)},
                   {"pairs_slower_percent", percents(finding.slowdowns)},
                   {"lower_percent", or_null(percent(difference.lower(settings.confidence)))},
                   {"upper_percent", or_null(percent(difference.upper(settings.confidence)))},
                   {"p_slower", finding.p_slower},
                   {"p_faster", finding.p_faster},
                   {"scatter_percent", scatter_of(finding)},
                   {"more_runs", finding.more_runs ? Json(*finding.more_runs) : Json(nullptr)},
                   {"base", side_json(finding.base)},
                   {"new", side_json(finding.candidate)},
                   {"notes", finding.notes}});
  }
  const Json json{{"settings",
                   {{"minimum_effect_percent", 100 * settings.minimum_effect},
                    {"confidence_percent", 100 * settings.confidence},
                    {"resolution_percent", 100 * settings.resolution}}},
                  {"exit_code", exit_code_of(findings)},
                  {"configurations", all}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cnn::compare
