#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/choose.h"
#include "bench/all_reduce/reduction.h"
#include "bench/flags/json.h"

namespace cnn::bench {

// The row of one buffer size.
struct ReduceRow {
  std::size_t bytes = 0;
  allreduce::Candidate by;  // the choice; its algorithm is null if NCCL chooses
  Timing time;
  std::optional<Timing> copy, mpi;  // a copy and MPI's all-reduce of as many bytes, interleaved
  allreduce::Bound bound = {};      // lower bound of the time of every all-reduce of this size
  std::optional<double> error;      // the largest error; nothing: not checked
  double tolerance = 0;

  bool wrong() const { return error && !(*error <= tolerance); }
};

// Return the bandwidths of nccl-tests in bytes per second: algbw, the buffer size over the time,
// and busbw, which corrects for the number of ranks and compares with the bandwidth of a link.
double algorithm_bandwidth(const ReduceRow& row);
double bus_bandwidth(const ReduceRow& row, int ranks);
// Returns the ratio of the median time to the bound; nothing if no limit was measured. A reduction
// that is faster than its bound shows that the limit was measured too low on a busy machine; its
// own time then replaces the bound, in bound_seconds() and bound_text() too.
std::optional<double> distance(const ReduceRow& row);
double bound_seconds(const ReduceRow& row);
std::string bound_text(const ReduceRow& row);  // "memory", "line", "latency", "itself", "-"

// Return the lines of the table: the header for the columns of this row, and the row.
std::string table_header(const ReduceRow& row);
std::string table_line(const ReduceRow& row, int ranks);
// Returns the last line, "# avg busbw X  worst distance Y  errors Z".
std::string table_end(const std::vector<ReduceRow>& rows, int ranks);
// Returns the rows for -J. limits: a result of limits_json().
Json table_json(const std::vector<ReduceRow>& rows, const allreduce::Topology& topology,
                const Json& limits);

}  // namespace cnn::bench
