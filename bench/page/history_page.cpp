#include <fmt/format.h>
#include <utility>
#include <vector>

#include "bench/page/chart.h"
#include "bench/page/page.h"
#include "bench/page/style.h"
#include "runtime/median.h"

namespace cnn::page {
namespace {

using compare::Run;
using compare::Series;
using compare::SpeedChange;

double speed_of(const Run& run) { return run.images_per_step / run.steps.front().seconds; }

std::string about(const Run& run, std::size_t number) {
  const std::string commit = compare::text_at(run.json, {"commit"});
  return fmt::format("run {}, {}{}: {:.2f} images/sec", number, run.started,
                     commit.empty() ? "" : ", commit " + commit, speed_of(run));
}

// Draws speeds by run, vertical lines at changes, and levels of medians in between.
std::string speed_chart(const Series& series) {
  std::vector<double> speeds, numbers;
  for (const Run& run : series.runs) {
    speeds.push_back(speed_of(run));
    numbers.push_back(static_cast<double>(numbers.size() + 1));
  }
  Chart chart({"Speed of each run", "run", "images/sec"}, range_of(numbers, false),
              range_of(speeds, false));
  std::vector<std::size_t> bounds{0};
  for (const SpeedChange& change : series.changes) {
    bounds.push_back(change.run);
    chart.upright(static_cast<double>(change.run) + 0.5, "rule",
                  fmt::format("{:+.1f} %", compare::percent(-change.slowdown)));
  }
  bounds.push_back(speeds.size());
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const double median =
        cnn::median({speeds.begin() + static_cast<std::ptrdiff_t>(bounds[i]),
                     speeds.begin() + static_cast<std::ptrdiff_t>(bounds[i + 1])});
    chart.line({{static_cast<double>(bounds[i]) + 0.5, median},
                {static_cast<double>(bounds[i + 1]) + 0.5, median}},
               "a", fmt::format("median {:.2f} images/sec", median));
  }
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    chart.dot(numbers[i], speeds[i], "b", about(series.runs[i], i + 1));
  }
  return chart.svg();
}

std::string series_part(const Series& series, const compare::Settings& settings) {
  std::string text = fmt::format("<h2>{}</h2>\n", escaped(series.label));
  if (series.too_short()) {
    text += fmt::format("<p>{} runs are too few: {} could show a change.</p>\n", series.runs.size(),
                        series.min_runs);
  } else if (series.changes.empty()) {
    text += fmt::format("<p>No change of {:g} % or more.</p>\n", 100 * settings.minimum_effect);
  }
  for (const SpeedChange& change : series.changes) {
    text +=
        fmt::format("<p class=\"{}\">{}</p>\n", change.slowdown > 0 ? "regression" : "improvement",
                    escaped(compare::sentence(series, change)));
    for (const std::string& line : change.together) {
      text += fmt::format("<p><small>{}</small></p>\n", escaped(line));
    }
  }
  for (const std::string& note : series.notes) {
    text += fmt::format("<p><small>{}</small></p>\n", escaped(note));
  }
  return text + "<main>\n" + speed_chart(series) + "</main>\n";
}

}  // namespace

std::string history_page(const std::vector<Series>& all, const compare::Settings& settings) {
  std::string body = "<h1>When did the speed change?</h1>\n";
  for (const Series& series : all) {
    body += series_part(series, settings);
  }
  return document("cnn_compare --history", body);
}

}  // namespace cnn::page
