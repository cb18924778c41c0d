#include <fmt/format.h>

#include "bench/page/chart.h"
#include "bench/page/json_text.h"
#include "bench/page/run_sections.h"

namespace cnn::page {
namespace {

// Returns a cell with the number; empty if the evaluation lacks it.
std::string evaluation_cell(const Json& evaluation, const char* key, int digits) {
  const auto value = number_at(evaluation, {key});
  return value ? fmt::format("<td>{:.{}f}</td>", *value, digits) : std::string("<td></td>");
}

// Returns the mean loss; the result file has null for one that is not finite.
std::string evaluation_loss_cell(const Json& evaluation) {
  return number_at(evaluation, {"base_loss"}) ? evaluation_cell(evaluation, "base_loss", 4)
                                              : "<td class=\"regression\">not finite</td>";
}

std::string evaluation_rows(const Json& evaluations) {
  std::string rows;
  for (const Json& evaluation : evaluations) {
    rows += "<tr>" + evaluation_cell(evaluation, "global_step", 0) +
            evaluation_cell(evaluation, "examples", 0) + evaluation_cell(evaluation, "top_1", 4) +
            evaluation_cell(evaluation, "top_5", 4) + evaluation_loss_cell(evaluation) +
            evaluation_cell(evaluation, "images_per_sec", 2) + "</tr>\n";
  }
  return rows;
}

}  // namespace

std::string evaluation_section(std::span<const ShownRun> runs) {
  std::string text;
  for (const ShownRun& run : runs) {
    const Json& evaluations = at(*run.json, {"evaluation"});
    if (!evaluations.is_array() || evaluations.empty()) {
      continue;
    }
    text += fmt::format(
        "<figure class=\"wide\"><figcaption>Evaluations, {}</figcaption><div "
        "class=\"scroll\"><table><tr><th>global step</th><th>examples</th><th>accuracy @ "
        "1</th><th>accuracy @ 5</th><th>base loss</th><th>images/sec</th></tr>\n"
        "{}</table></div></figure>\n",
        escaped(run.label), evaluation_rows(evaluations));
  }
  return text;
}

}  // namespace cnn::page
