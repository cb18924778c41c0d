#include <algorithm>
#include <fmt/format.h>

#include "bench/page/chart.h"
#include "bench/page/json_text.h"
#include "bench/page/run_sections.h"

namespace cnn::page {
namespace {

constexpr double one_mib = 1024.0 * 1024.0;
constexpr std::size_t most_rows = 12;

Chart::Points live_memory(const Json& memory) {
  Chart::Points points;
  for (const Json& step : at(memory, {"steps"})) {
    const double x = 1e3 * number_or(step, "start", 0), y = number_or(step, "bytes", 0) / one_mib;
    if (!points.empty()) {
      points.emplace_back(x, points.back().second);  // what lives changes between steps, at once
    }
    points.emplace_back(x, y);
  }
  std::ranges::stable_sort(points, {}, [](const auto& point) { return point.first; });
  return points;
}

std::string memory_chart(const ShownRun& run, const Json& memory) {
  const Chart::Points points = live_memory(memory);
  const double arena = number_or(memory, "arena_bytes", 0) / one_mib;
  std::vector<double> times, sizes{arena};
  for (const auto& [x, y] : points) {
    times.push_back(x);
    sizes.push_back(y);
  }
  Chart chart({fmt::format("Memory over the step, {}", run.label), "ms of the step",
               "MiB live in the arena"},
              range_of(times, true), range_of(sizes, true));
  chart.area(points, run.style, fmt::format("{}: live bytes by the plan", run.label));
  chart.level(arena, "rule", fmt::format("arena {:.1f} MiB", arena));
  return chart.svg();
}

std::string tensor_rows(const Json& tensors) {
  std::string rows;
  std::size_t count = 0;
  for (const Json& tensor : tensors) {
    if (++count > most_rows) {
      break;
    }
    rows += fmt::format("<tr><td class=\"name\">{}</td><td>{:.2f}</td></tr>\n",
                        escaped(text_of(at(tensor, {"tensor"}))),
                        number_or(tensor, "bytes", 0) / one_mib);
  }
  return rows;
}

std::string tensor_table(const std::string& title, const Json& tensors) {
  if (tensors.empty()) {
    return {};
  }
  double all = 0;
  for (const Json& tensor : tensors) {
    all += number_or(tensor, "bytes", 0);
  }
  return fmt::format(
      "<figure><figcaption>{} <small>{} of {:.1f} MiB together</small></figcaption><div "
      "class=\"scroll\"><table><tr><th>tensor</th><th>MiB</th></tr>\n{}</table></div></figure>\n",
      escaped(title), tensors.size(), all / one_mib, tensor_rows(tensors));
}

std::string lms_sentence(const Json& json) {
  const Json& lms = at(json, {"plan", "lms"});
  if (!lms.is_object() || !lms.value("necessary", false)) {
    return {};
  }
  return fmt::format(
      "<p>Large model support: {:.1f} MiB would be needed, {:.1f} MiB are allowed. Policy {} moves "
      "{:.1f} MiB out and {:.1f} MiB in each step and computes {} nodes again.</p>\n",
      number_or(lms, "need_bytes", 0) / one_mib, number_or(lms, "budget_bytes", 0) / one_mib,
      escaped(text_of(at(lms, {"policy"}))), number_or(lms, "swapped_out_bytes", 0) / one_mib,
      number_or(lms, "swapped_in_bytes", 0) / one_mib, text_of(at(lms, {"recomputed_nodes"})));
}

}  // namespace

std::string memory_section(std::span<const ShownRun> runs) {
  std::string text;
  for (const ShownRun& run : runs) {
    text += lms_sentence(*run.json);
    const Json& memory = at(*run.json, {"profile", "memory"});
    if (!memory.is_object() || at(memory, {"steps"}).empty()) {
      continue;
    }
    text += memory_chart(run, memory);
    text += tensor_table("Biggest tensors at the peak, " + run.label, at(memory, {"biggest"}));
    text += tensor_table("Moved to the host in a step, " + run.label, at(memory, {"moved"}));
  }
  return text;
}

}  // namespace cnn::page
