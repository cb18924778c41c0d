#include "bench/all_reduce/table.h"

#include <algorithm>
#include <fmt/format.h>

namespace cnn::bench {
namespace {

constexpr double micro = 1e6, giga = 1e-9;

std::string_view wire_name(allreduce::Wire wire) {
  return wire == allreduce::Wire::f32 ? "fp32" : wire == allreduce::Wire::bf16 ? "bf16" : "fp16";
}

std::string_view order_name(allreduce::Order order) {
  return order == allreduce::Order::fast   ? "fast"
         : order == allreduce::Order::rank ? "rank"
                                           : "tree";
}

std::string error_text(const ReduceRow& row) {
  return row.error ? fmt::format("{:g}{}", *row.error, row.wrong() ? " WRONG" : "") : "-";
}

}  // namespace

double algorithm_bandwidth(const ReduceRow& row) {
  return static_cast<double>(row.bytes) / row.time.median;
}

double bus_bandwidth(const ReduceRow& row, int ranks) {
  return algorithm_bandwidth(row) * 2 * (ranks - 1) / ranks;
}

double distance(const ReduceRow& row) { return row.bound > 0 ? row.time.median / row.bound : 1; }

std::string table_header(const ReduceRow& row) {
  std::string line = fmt::format(
      "{:>11} {:>10} {:>5} {:>3} {:>14} {:>8} {:>5} {:>3} {:>4} {:>5} {:>11} {:>11} {:>7} {:>7} "
      "{:>11} {:>8}",
      "bytes", "count", "type", "op", "algo", "dims", "rings", "K", "wire", "order", "t_min_us",
      "t_med_us", "algbw", "busbw", "bound_us", "distance");
  if (row.copy) {
    line += fmt::format(" {:>11} {:>7}", "memcpy_us", "/memcpy");
  }
  if (row.mpi) {
    line += fmt::format(" {:>11} {:>6}", "mpi_us", "mpi/");
  }
  return line + "  err";
}

std::string table_line(const ReduceRow& row, int ranks) {
  const allreduce::Options& o = row.by.options;
  std::string line = fmt::format(
      "{:>11} {:>10} {:>5} {:>3} {:>14} {:>8} {:>5} {:>3} {:>4} {:>5} {:>11.2f} {:>11.2f} {:>7.2f} "
      "{:>7.2f} {:>11.2f} {:>8.2f}",
      row.bytes, row.bytes / sizeof(float), "float", "sum", row.by.algorithm->name,
      allreduce::dims_text(o), o.rings, o.chunks, wire_name(o.wire), order_name(o.order),
      micro * row.time.least, micro * row.time.median, giga * algorithm_bandwidth(row),
      giga * bus_bandwidth(row, ranks), micro * row.bound, distance(row));
  if (row.copy) {
    line += fmt::format(" {:>11.2f} {:>7.2f}", micro * row.copy->median,
                        row.time.median / row.copy->median);
  }
  if (row.mpi) {
    line += fmt::format(" {:>11.2f} {:>6.2f}", micro * row.mpi->median,
                        row.mpi->median / row.time.median);
  }
  return line + "  " + error_text(row);
}

std::string table_end(const std::vector<ReduceRow>& rows, int ranks) {
  double bandwidth = 0, worst = 0;
  for (const ReduceRow& row : rows) {
    bandwidth += bus_bandwidth(row, ranks) / static_cast<double>(rows.size());
    worst = std::max(worst, distance(row));
  }
  return fmt::format("# avg busbw {:.2f}  worst distance {:.2f}  errors {}", giga * bandwidth,
                     worst, std::ranges::count_if(rows, &ReduceRow::wrong));
}

Json table_json(const std::vector<ReduceRow>& rows, int ranks) {
  Json all = Json::array();
  for (const ReduceRow& row : rows) {
    const allreduce::Options& o = row.by.options;
    Json json{{"bytes", row.bytes},
              {"algorithm", row.by.algorithm->name},
              {"dims", o.dims},
              {"rings", o.rings},
              {"chunks", o.chunks},
              {"window", o.window},
              {"wire", wire_name(o.wire)},
              {"order", order_name(o.order)},
              {"predicted_seconds", row.by.seconds},
              {"least_seconds", row.time.least},
              {"median_seconds", row.time.median},
              {"bound_seconds", row.bound},
              {"bus_bytes_per_second", bus_bandwidth(row, ranks)},
              {"error", or_null(row.error)}};
    if (row.copy) {
      json["memcpy_median_seconds"] = row.copy->median;
    }
    if (row.mpi) {
      json["mpi_median_seconds"] = row.mpi->median;
    }
    all.push_back(std::move(json));
  }
  return {{"ranks", ranks}, {"rows", all}};
}

}  // namespace cnn::bench
