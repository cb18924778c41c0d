#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/choose.h"
#include "bench/all_reduce/reduction.h"
#include "bench/flags/json.h"

namespace cnn::bench {

// One size of the table.
struct ReduceRow {
  std::size_t bytes = 0;
  allreduce::Candidate by;  // without an algorithm: NCCL chooses
  Timing time;
  std::optional<Timing> copy, mpi;  // of as many bytes, in the same rounds
  allreduce::Bound bound = {};      // what no all-reduce of this size can fall below
  std::optional<double> error;      // the largest; nothing: not checked
  double tolerance = 0;

  bool wrong() const { return error && !(*error <= tolerance); }
};

// Bytes a second: of the buffer, and what a link carries for it whatever the number of ranks is.
double algorithm_bandwidth(const ReduceRow& row);
double bus_bandwidth(const ReduceRow& row, int ranks);
// The median time over the bound. Nothing where no limit was measured. A reduction that was faster
// than its bound shows that the limit was measured too low on a busy machine: its own time is the
// bound then, see bound_seconds() and bound_text().
std::optional<double> distance(const ReduceRow& row);
double bound_seconds(const ReduceRow& row);
std::string bound_text(const ReduceRow& row);  // "memory", "line", "latency", "itself", "-"

std::string table_header(const ReduceRow& row);  // its columns
std::string table_line(const ReduceRow& row, int ranks);
// "# avg busbw X  worst distance Y  errors Z"
std::string table_end(const std::vector<ReduceRow>& rows, int ranks);
// limits: as limits_json() gives them.
Json table_json(const std::vector<ReduceRow>& rows, const allreduce::Topology& topology,
                const Json& limits);

}  // namespace cnn::bench
