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
  allreduce::Candidate by;
  Timing time;
  std::optional<Timing> copy, mpi;  // of as many bytes, in the same rounds
  double bound = 0;                 // seconds
  std::optional<double> error;      // the largest; nothing: not checked
  double tolerance = 0;

  bool wrong() const { return error && !(*error <= tolerance); }
};

// Bytes a second: of the buffer, and what a link carries for it whatever the number of ranks is.
double algorithm_bandwidth(const ReduceRow& row);
double bus_bandwidth(const ReduceRow& row, int ranks);
double distance(const ReduceRow& row);  // times what the bound takes

std::string table_header(const ReduceRow& row);  // its columns
std::string table_line(const ReduceRow& row, int ranks);
// "# avg busbw X  worst distance Y  errors Z"
std::string table_end(const std::vector<ReduceRow>& rows, int ranks);
Json table_json(const std::vector<ReduceRow>& rows, int ranks);

}  // namespace cnn::bench
