#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <vector>

#include "bench/page/chart.h"
#include "bench/page/json_text.h"
#include "bench/page/run_sections.h"

namespace cnn::page {
namespace {

// A kind of operation in each of the runs; null if a run lacks it.
struct OperationRow {
  std::string name;
  std::vector<const Json*> of_run;
  double seconds = 0;  // maximum over the runs
};

std::vector<OperationRow> operations_of(std::span<const ShownRun> runs) {
  std::map<std::string, OperationRow> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const Json& op : at(*runs[i].json, {"profile", "ops"})) {
      OperationRow& row = rows[text_of(at(op, {"op"}))];
      row.name = text_of(at(op, {"op"}));
      row.of_run.resize(runs.size(), nullptr);
      row.of_run[i] = &op;
      row.seconds = std::max(row.seconds, number_or(op, "seconds", 0));
    }
  }
  std::vector<OperationRow> sorted;
  sorted.reserve(rows.size());
  for (auto& [name, row] : rows) {
    sorted.push_back(std::move(row));
  }
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &OperationRow::seconds);
  return sorted;
}

std::string cells_of(const Json* op) {
  if (op == nullptr) {
    return "<td colspan=\"5\">none</td>";
  }
  constexpr double giga = 1e-9;
  const double seconds = std::max(number_or(*op, "seconds", 0), 1e-12);
  const auto roofline = number_at(*op, {"roofline_seconds"});
  return fmt::format("<td>{}</td><td>{:.3f}</td><td>{:.1f}</td><td>{:.1f}</td><td>{}</td>",
                     escaped(text_of(at(*op, {"nodes"}))), 1e3 * seconds,
                     giga * number_or(*op, "flops", 0) / seconds,
                     giga * number_or(*op, "bytes", 0) / seconds,
                     roofline ? fmt::format("{:.0f}", 100 * *roofline / seconds) : "");
}

std::string change_of(const OperationRow& row) {
  if (row.of_run.size() != 2 || row.of_run[0] == nullptr || row.of_run[1] == nullptr) {
    return "<td></td>";
  }
  const double before = number_or(*row.of_run[0], "seconds", 0);
  const double now = number_or(*row.of_run[1], "seconds", 0);
  return before > 0 ? fmt::format("<td>{:+.1f} %</td>", 100 * (now / before - 1)) : "<td></td>";
}

}  // namespace

std::string operation_section(std::span<const ShownRun> runs) {
  const std::vector<OperationRow> rows = operations_of(runs);
  if (rows.empty()) {
    return {};
  }
  std::string table = "<tr><th>operation</th>";
  for (const ShownRun& run : runs) {
    table += fmt::format(
        "<th>{}: count</th><th>ms</th><th>GFLOP/s</th><th>GB/s</th><th>% of its roofline</th>",
        escaped(run.label));
  }
  table += runs.size() == 2 ? "<th>change</th></tr>\n" : "</tr>\n";
  for (const OperationRow& row : rows) {
    table += fmt::format("<tr><td class=\"name\">{}</td>", escaped(row.name));
    for (const Json* op : row.of_run) {
      table += cells_of(op);
    }
    table += (runs.size() == 2 ? change_of(row) : "") + "</tr>\n";
  }
  return fmt::format(
      "<figure class=\"wide\"><figcaption>Operations of a step</figcaption><div "
      "class=\"scroll\"><table>{}</table></div></figure>\n",
      table);
}

}  // namespace cnn::page
