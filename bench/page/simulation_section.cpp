#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "bench/page/chart.h"
#include "bench/page/json_text.h"
#include "bench/page/run_sections.h"
#include "bench/page/units.h"

namespace cnn::page {
namespace {

constexpr double to_milli = 1e3, to_giga = 1e-9, to_percent = 100;

std::string simulation_figure(const std::string& caption, std::string_view note,
                              const std::string& rows) {
  return fmt::format(
      "<figure class=\"wide\"><figcaption>{} <small>{}</small></figcaption><div "
      "class=\"scroll\"><table>{}</table></div></figure>\n",
      escaped(caption), escaped(note), rows);
}

// Returns a cell with the number in this unit; empty if the file lacks it.
std::string simulation_cell(const Json& row, const char* key, double unit, int digits) {
  const auto value = number_at(row, {key});
  return value ? fmt::format("<td>{:.{}f}</td>", unit * *value, digits) : std::string("<td></td>");
}

std::string predicted_operations(const Json& ops) {
  double all = 0;
  for (const Json& op : ops) {
    all += number_or(op, "seconds", 0);
  }
  std::string rows =
      "<tr><th>operation</th><th>count</th><th>ms</th><th>% of all</th><th>GB</th><th>GFLOP</th>"
      "</tr>\n";
  for (const Json& op : ops) {
    rows += fmt::format("<tr><td class=\"name\">{}</td>", escaped(text_of(at(op, {"op"})))) +
            simulation_cell(op, "nodes", 1, 0) + simulation_cell(op, "seconds", to_milli, 3) +
            simulation_cell(op, "seconds", all > 0 ? to_percent / all : 0, 1) +
            simulation_cell(op, "bytes", to_giga, 2) + simulation_cell(op, "flops", to_giga, 1) +
            "</tr>\n";
  }
  return rows;
}

std::string predicted_ranks(const Json& ranks) {
  std::string rows =
      "<tr><th>ranks</th><th>hosts</th><th>images/sec</th><th>step, ms</th><th>efficiency, %</th>"
      "<th>exchange, ms</th><th>exposed, ms</th><th>slowdown beside the exchange, ms</th>"
      "<th>wait for the slowest rank, ms</th><th>efficiency without overlap, %</th></tr>\n";
  for (const Json& row : ranks) {
    rows += "<tr>" + simulation_cell(row, "ranks", 1, 0) + simulation_cell(row, "hosts", 1, 0) +
            simulation_cell(row, "images_per_sec", 1, 1) +
            simulation_cell(row, "step_seconds", to_milli, 3) +
            simulation_cell(row, "efficiency", to_percent, 2) +
            simulation_cell(row, "exchange_seconds", to_milli, 3) +
            simulation_cell(row, "exposed_seconds", to_milli, 3) +
            simulation_cell(row, "slowdown_seconds", to_milli, 3) +
            simulation_cell(row, "straggler_seconds", to_milli, 3) +
            simulation_cell(row, "efficiency_without_overlap", to_percent, 2) + "</tr>\n";
  }
  return rows;
}

// Returns the value of an entry of the section "simulation" with its unit.
std::string machine_value(const Json& simulation, const std::string& key) {
  const Json& value = at(simulation, {key.c_str()});
  if (!value.is_number()) {
    return text_of(value);
  }
  const auto number = value.get<double>();
  if (key == "memory_limit") {
    return bytes_text(number);
  }
  if (key == "flops_per_image") {
    return fmt::format("{:.2f} GFLOP", to_giga * number);
  }
  return key == "bytes_per_image" ? fmt::format("{:.3f} GB", to_giga * number)
                                  : readable(key, value);
}

std::string machine_row(std::string_view name, const std::string& value) {
  return value.empty()
             ? std::string()
             : fmt::format("<tr><td class=\"name\">{}</td><td class=\"name\">{}</td></tr>\n",
                           escaped(name), escaped(value));
}

std::string simulated_machine(const Json& simulation) {
  constexpr std::pair<const char*, std::string_view> entries[] = {
      {"machine", "machine"},
      {"flops_per_second", "ceiling of arithmetic"},
      {"bytes_per_second", "ceiling of memory"},
      {"link_out_bytes_per_second", "link to the host"},
      {"link_in_bytes_per_second", "link from the host"},
      {"memory_limit", "limit of memory"},
      {"workspace_bytes", "largest workspace"},
      {"flops_per_image", "arithmetic of an image"},
      {"bytes_per_image", "memory traffic of an image"},
      {"fusion", "fusion"},
      {"library_convolutions", "convolutions by cuDNN"},
      {"own_convolutions", "convolutions by kernels of this program"},
      {"source", "source of these numbers"}};
  std::string rows;
  for (const auto& [key, name] : entries) {
    rows += machine_row(name, machine_value(simulation, key));
  }
  for (const char* key : {"products", "bytes"}) {
    if (const auto share = number_at(simulation, {"efficiency", key})) {
      rows += machine_row(fmt::format("share of the ceiling that kernels reach, {}", key),
                          fmt::format("{:.1f} %", to_percent * *share));
    }
  }
  return rows;
}

}  // namespace

std::string simulation_section(std::span<const ShownRun> runs) {
  std::string text;
  for (const ShownRun& run : runs) {
    const Json& simulation = at(*run.json, {"simulation"});
    if (!simulation.is_object()) {
      continue;
    }
    if (const Json& ranks = at(simulation, {"ranks"}); !ranks.empty()) {
      text += simulation_figure("Predicted speed by number of ranks, " + run.label,
                                "derived, not measured", predicted_ranks(ranks));
    }
    if (const Json& ops = at(simulation, {"by_op"}); !ops.empty()) {
      text += simulation_figure("Predicted operations of a step, " + run.label,
                                "without launches, gaps between kernels and the input",
                                predicted_operations(ops));
    }
    text += simulation_figure("Simulated machine, " + run.label, "described, not present",
                              simulated_machine(simulation));
  }
  return text;
}

}  // namespace cnn::page
