#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "bench/page/chart.h"
#include "bench/page/json_text.h"
#include "bench/page/run_sections.h"

namespace cnn::page {
namespace {

// Describes one row of bars: the spans of a lane, with the keys of their start and end.
struct LaneRow {
  std::string name;
  const Json* spans = nullptr;
  const char* start = nullptr;
  const char* end = nullptr;
  bool planned = false;
};

// whose: prefix of the names.
void add_rows(const Json& lanes, const std::string& whose, std::vector<LaneRow>& rows) {
  for (const Json& lane : lanes) {
    const Json& spans = at(lane, {"spans"});
    const std::string name = whose + text_of(at(lane, {"lane"}));
    if (!spans.is_array() || spans.empty()) {
      continue;
    }
    if (spans.front().contains("planned_start")) {
      rows.push_back({name + ", plan", &spans, "planned_start", "planned_end", true});
    }
    rows.push_back({name, &spans, "start", "end", false});
  }
}

// Returns the rows of all ranks below one another, up to a readable number.
std::vector<LaneRow> rows_of(const Json& profile) {
  constexpr std::size_t max_ranks = 8;
  std::vector<LaneRow> rows;
  const Json& ranks = at(profile, {"ranks"});
  if (!ranks.is_array()) {
    add_rows(at(profile, {"lanes"}), "", rows);
    return rows;
  }
  for (std::size_t rank = 0; rank < std::min(ranks.size(), max_ranks); ++rank) {
    add_rows(at(ranks[rank], {"lanes"}), fmt::format("rank {}, ", rank), rows);
  }
  return rows;
}

void add_bars(Chart& chart, const LaneRow& row, std::size_t index, const std::string& style) {
  const double upper = static_cast<double>(index) + 0.15, lower = upper + 0.7;
  std::size_t count = 0;
  for (const Json& span : *row.spans) {
    const double start = 1e3 * number_or(span, row.start, 0);
    const double end = 1e3 * number_or(span, row.end, 0);
    // Alternates two shades, so that neighbours are distinguishable.
    chart.bar(
        {start, end}, {upper, lower},
        fmt::format("{}{}{}", style, row.planned ? " planned" : "", count++ % 2 == 1 ? " odd" : ""),
        fmt::format("{}: {:.3f} ms", text_of(at(span, {"name"})), end - start));
  }
}

// Returns "<span> planned".
std::string swatch(const std::string& style, std::string_view about) {
  return fmt::format("<span class=\"swatch {}\"></span>{}", style, about);
}

constexpr std::pair<std::string_view, std::string_view> lanes_explained[] = {
    {"compute", "operations"},
    {"side", "operations beside the others"},
    {"copy_out", "copies to the host"},
    {"copy_in", "copies from the host"},
    {"communicate", "exchange between ranks"}};

// Returns the legend of the chart's colours and of the lanes present.
std::string legend(const ShownRun& run, const std::vector<LaneRow>& rows, bool planned) {
  std::string text = swatch(run.style, "measured") + swatch(run.style + " odd", "the next one") +
                     (planned ? swatch("planned", "as planned") : "");
  for (const auto& explained : lanes_explained) {
    const std::string_view lane = explained.first, about = explained.second;
    const bool is_there = std::ranges::any_of(
        rows, [&](const LaneRow& row) { return row.name.find(lane) != std::string::npos; });
    text += is_there ? fmt::format("; {}: {}", lane, about) : "";
  }
  return fmt::format("<p class=\"legend\">{}</p>", text);
}

std::string lane_chart(const ShownRun& run, const std::vector<LaneRow>& rows) {
  std::vector<double> ends{0};
  std::vector<std::string> names;
  for (const LaneRow& row : rows) {
    names.push_back(row.name);
    for (const Json& span : *row.spans) {
      ends.push_back(1e3 * number_or(span, row.end, 0));
    }
  }
  const bool planned = std::ranges::any_of(rows, &LaneRow::planned);
  Chart chart(
      {fmt::format("Lanes of a step, {}", run.label), "ms", planned ? "plan beside measured" : ""},
      range_of(ends, true), names);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    add_bars(chart, rows[i], i, run.style);
  }
  return chart.svg(legend(run, rows, planned));
}

}  // namespace

std::string lane_section(std::span<const ShownRun> runs) {
  std::string text;
  for (const ShownRun& run : runs) {
    const std::vector<LaneRow> rows = rows_of(at(*run.json, {"profile"}));
    text += rows.empty() ? std::string() : lane_chart(run, rows);
  }
  return text;
}

}  // namespace cnn::page
