#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <vector>

#include "bench/page/chart.h"
#include "bench/page/heading.h"
#include "bench/page/json_text.h"
#include "bench/page/run_sections.h"
#include "bench/page/units.h"

namespace cnn::page {
namespace {

struct Bound {
  std::string name;
  double percent = 0;  // of the limit
  std::string about;
};

// unit: a result file key whose unit both numbers have.
void add_ratio(std::vector<Bound>& bounds, const std::string& name, const char* unit,
               const std::optional<double>& limit, const std::optional<double>& reached) {
  if (limit && reached && *limit > 0 && *reached > 0) {
    bounds.push_back({name, 100 * *limit / *reached,
                      fmt::format("{}: limit {}, reached {}", name, readable(unit, *limit),
                                  readable(unit, *reached))});
  }
}

// At 100 %, no program could be faster.
std::vector<Bound> bounds_of(const ShownRun& run) {
  const Json& json = *run.json;
  std::vector<Bound> bounds;
  if (const auto percent = number_at(json, {"summary", "percent_of_roofline"})) {
    bounds.push_back({run.label + ": speed", *percent, "share of the roofline of the device"});
  }
  add_ratio(bounds, run.label + ": memory", "bytes", number_at(json, {"plan", "lower_bound_bytes"}),
            number_at(json, {"plan", "arena_bytes"}));
  add_ratio(bounds, run.label + ": LMS", "seconds",
            number_at(json, {"plan", "lms", "lower_bound_seconds"}),
            number_at(json, {"plan", "lms", "measured_step_seconds"}));
  return bounds;
}

void flatten(const std::string& name, const Json& json, std::map<std::string, std::string>& out) {
  if (!json.is_object()) {
    out[name] = readable(name, json);
    return;
  }
  for (const auto& [key, value] : json.items()) {
    flatten(name.empty() ? key : fmt::format("{} {}", name, key), value, out);
  }
}

std::map<std::string, std::string> surroundings_of(const Json& json) {
  std::map<std::string, std::string> values;
  flatten("", at(json, {"machine"}), values);
  for (const char* key : {"version", "commit", "started"}) {
    values[key] = text_of(at(json, {key}));
  }
  std::string command;
  for (const Json& word : at(json, {"command"})) {
    command += text_of(word) + " ";
  }
  values["command"] = command;
  return values;
}

}  // namespace

std::string bound_section(std::span<const ShownRun> runs) {
  std::vector<std::string> names;
  std::vector<double> shares{100};
  std::vector<Bound> bounds;
  for (const ShownRun& run : runs) {
    for (const Bound& bound : bounds_of(run)) {
      names.push_back(bound.name);
      shares.push_back(bound.percent);
      bounds.push_back(bound);
    }
  }
  if (bounds.empty()) {
    return {};
  }
  Chart chart({"How near the bounds", "% (100: none can do better)", ""}, range_of(shares, true),
              names);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const double upper = static_cast<double>(i) + 0.15;
    chart.bar({0, bounds[i].percent}, {upper, upper + 0.7},
              bounds[i].name.starts_with(runs.front().label + ":") ? runs.front().style
                                                                   : runs.back().style,
              fmt::format("{}: {:.1f} %", bounds[i].about, bounds[i].percent));
  }
  chart.upright(100, "rule", "bound");
  return chart.svg();
}

std::string machine_section(std::span<const ShownRun> runs) {
  std::map<std::string, std::vector<std::string>> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [name, value] : surroundings_of(*runs[i].json)) {
      rows[name].resize(runs.size());
      rows[name][i] = value;
    }
  }
  std::string table = "<tr><th></th>";
  for (const ShownRun& run : runs) {
    table += fmt::format("<th>{}</th>", escaped(run.label));
  }
  table += "</tr>\n";
  for (const auto& [name, values] : rows) {
    if (std::ranges::all_of(values, &std::string::empty)) {
      continue;
    }
    const bool unlike = values.size() > 1 && values.front() != values.back();
    table += fmt::format("<tr{}><td class=\"name\">{}</td>", unlike ? " class=\"unlike\"" : "",
                         escaped(name));
    for (const std::string& value : values) {
      table += fmt::format("<td class=\"name\">{}</td>", escaped(value));
    }
    table += "</tr>\n";
  }
  const bool simulated = std::ranges::any_of(
      runs, [](const ShownRun& run) { return !simulated_machine_of(*run.json).empty(); });
  return fmt::format(
      "<figure class=\"wide\"><figcaption>Machine and program{}{}</figcaption><div "
      "class=\"scroll\"><table>{}</table></div></figure>\n",
      runs.size() > 1 ? " <small>marked: unlike</small>" : "",
      simulated ? " <small>of the host, which is not the simulated machine</small>" : "", table);
}

}  // namespace cnn::page
