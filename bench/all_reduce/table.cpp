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

std::string_view algorithm_name(const ReduceRow& row) {
  return row.by.algorithm == nullptr ? "nccl" : row.by.algorithm->name;
}

// NCCL does not tell how many rings and chunks it takes.
std::string count_cell(const ReduceRow& row, int count) {
  return row.by.algorithm == nullptr ? "-" : fmt::format("{}", count);
}
template <class Number>
Json of_own_algorithm(const ReduceRow& row, Number number) {
  return row.by.algorithm == nullptr ? Json(nullptr) : Json(number);
}

std::string error_text(const ReduceRow& row) {
  return row.error ? fmt::format("{:g}{}", *row.error, row.wrong() ? " WRONG" : "") : "-";
}

std::string distance_cell(std::optional<double> distance) {
  return distance ? fmt::format("{:.2f}", *distance) : "-";
}

}  // namespace

double algorithm_bandwidth(const ReduceRow& row) {
  return static_cast<double>(row.bytes) / row.time.median;
}

double bus_bandwidth(const ReduceRow& row, int ranks) {
  return algorithm_bandwidth(row) * 2 * (ranks - 1) / ranks;
}

double bound_seconds(const ReduceRow& row) { return std::min(row.bound.seconds, row.time.median); }

std::string bound_text(const ReduceRow& row) {
  if (row.bound.seconds <= 0) {
    return "-";
  }
  return row.time.median < row.bound.seconds ? "itself" : std::string(row.bound.by);
}

std::optional<double> distance(const ReduceRow& row) {
  const double bound = bound_seconds(row);
  return bound > 0 ? std::optional(row.time.median / bound) : std::nullopt;
}

std::string table_header(const ReduceRow& row) {
  std::string line = fmt::format(
      "{:>11} {:>10} {:>5} {:>3} {:>14} {:>8} {:>5} {:>3} {:>4} {:>5} {:>11} {:>11} {:>7} {:>7} "
      "{:>11} {:>8} {:>7}",
      "bytes", "count", "type", "op", "algo", "dims", "rings", "K", "wire", "order", "t_min_us",
      "t_med_us", "algbw", "busbw", "bound_us", "distance", "limit");
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
      "{:>7.2f} {:>11.2f} {:>8} {:>7}",
      row.bytes, row.bytes / sizeof(float), "float", "sum", algorithm_name(row),
      allreduce::dims_text(o), count_cell(row, o.rings), count_cell(row, o.chunks),
      wire_name(o.wire), order_name(o.order), micro * row.time.least, micro * row.time.median,
      giga * algorithm_bandwidth(row), giga * bus_bandwidth(row, ranks), micro * bound_seconds(row),
      distance_cell(distance(row)), bound_text(row));
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
  double bandwidth = 0;
  std::optional<double> worst;
  for (const ReduceRow& row : rows) {
    bandwidth += bus_bandwidth(row, ranks) / static_cast<double>(rows.size());
    worst = std::max(worst, distance(row));  // nothing is less than any number
  }
  return fmt::format("# avg busbw {:.2f}  worst distance {}  errors {}", giga * bandwidth,
                     distance_cell(worst), std::ranges::count_if(rows, &ReduceRow::wrong));
}

Json table_json(const std::vector<ReduceRow>& rows, const allreduce::Topology& topology,
                const Json& limits) {
  const int ranks = topology.ranks();
  Json all = Json::array();
  for (const ReduceRow& row : rows) {
    const allreduce::Options& o = row.by.options;
    Json json{{"bytes", row.bytes},
              {"algorithm", algorithm_name(row)},
              {"dims", o.dims},
              {"rings", of_own_algorithm(row, o.rings)},
              {"chunks", of_own_algorithm(row, o.chunks)},
              {"window", of_own_algorithm(row, o.window)},
              {"wire", wire_name(o.wire)},
              {"order", order_name(o.order)},
              {"predicted_seconds", of_own_algorithm(row, row.by.seconds)},
              {"least_seconds", row.time.least},
              {"median_seconds", row.time.median},
              {"bound_seconds", bound_seconds(row)},
              {"bound_by", bound_text(row)},
              {"bound_source", allreduce::source_name(row.bound.source)},
              {"distance", or_null(distance(row))},
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
  const std::vector<int>& nodes = topology.numa_node_of;
  return {{"ranks", ranks},
          {"numa_node_of_rank", nodes.empty() ? Json(nullptr) : Json(nodes)},
          {"rows", all},
          {"limits", limits}};
}

}  // namespace cnn::bench
