#include <algorithm>
#include <fmt/format.h>

#include "bench/page/chart.h"
#include "bench/page/json_text.h"
#include "bench/page/run_sections.h"
#include "bench/page/units.h"

namespace cnn::page {
namespace {

constexpr std::size_t max_rows = 12;

// below: bytes that are live throughout.
Chart::Points live_memory(const Json& memory, double below) {
  Chart::Points points;
  for (const Json& step : at(memory, {"steps"})) {
    const double x = 1e3 * number_or(step, "start", 0);
    const double y = (below + number_or(step, "bytes", 0)) / one_mib;
    if (!points.empty()) {
      points.emplace_back(x, points.back().second);  // live bytes change between steps, in a jump
    }
    points.emplace_back(x, y);
  }
  std::ranges::stable_sort(points, {}, [](const auto& point) { return point.first; });
  return points;
}

// Returns the bytes of the plan outside the step's arena; older files lack them and cover the arena
// only.
double variable_bytes(const Json& json) {
  return number_at(json, {"plan", "variable_bytes"}).value_or(0);
}

std::string memory_chart(const ShownRun& run, const Json& memory) {
  const double variables = variable_bytes(*run.json);
  const Chart::Points points = live_memory(memory, variables);
  const double step_arena = number_or(memory, "arena_bytes", 0);
  const double planned =
      variables > 0 ? number_at(*run.json, {"plan", "arena_bytes"}).value_or(variables + step_arena)
                    : step_arena;
  const double peak = number_at(*run.json, {"memory", "arena_peak_bytes"}).value_or(planned);
  std::vector<double> times, sizes{planned / one_mib};
  for (const auto& [x, y] : points) {
    times.push_back(x);
    sizes.push_back(y);
  }
  Chart chart({fmt::format("Memory over the step, {}", run.label), "ms of the step",
               variables > 0 ? "MiB of the arena: variables, and what lives above them"
                             : "MiB that live in the arena, without variables"},
              range_of(times, true), range_of(sizes, true));
  chart.area(points, run.style, fmt::format("{}: live bytes by the plan", run.label));
  if (variables > 0) {
    chart.level(variables / one_mib, "rule", "variables " + bytes_text(variables),
                Chart::End::left);
  }
  const bool measured = variables > 0 && peak != planned;
  chart.level(planned / one_mib, "rule",
              "arena " + bytes_text(planned) +
                  (measured ? fmt::format(", measured peak {}", bytes_text(peak)) : ""));
  return chart.svg();
}

std::string tensor_rows(const Json& tensors) {
  std::string rows;
  std::size_t count = 0;
  for (const Json& tensor : tensors) {
    if (++count > max_rows) {
      break;
    }
    rows += fmt::format("<tr><td class=\"name\">{}</td><td>{}</td></tr>\n",
                        escaped(text_of(at(tensor, {"tensor"}))),
                        bytes_text(number_or(tensor, "bytes", 0)));
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
  const std::string shown =
      tensors.size() > max_rows ? fmt::format("; the first {} of them", max_rows) : "";
  return fmt::format(
      "<figure><figcaption>{} <small>{}: {} together{}</small></figcaption><div "
      "class=\"scroll\"><table><tr><th>tensor</th><th>size</th></tr>\n{}</table></div></figure>\n",
      escaped(title), tensors.size(), bytes_text(all), shown, tensor_rows(tensors));
}

std::string lms_sentence(const Json& json) {
  const Json& lms = at(json, {"plan", "lms"});
  if (!is_true(lms, "necessary")) {
    return {};
  }
  const auto size = [&lms](const char* key) { return bytes_text(number_or(lms, key, 0)); };
  return fmt::format(
      "<p>Large model support: {} would be needed, {} are allowed. Policy {} moves {} out and {} "
      "in "
      "each step and computes {} nodes again.</p>\n",
      size("need_bytes"), size("budget_bytes"), escaped(text_of(at(lms, {"policy"}))),
      size("swapped_out_bytes"), size("swapped_in_bytes"),
      escaped(text_of(at(lms, {"recomputed_nodes"}))));
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
