#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/flags/json.h"
#include "bench/report/output_file.h"
#include "layers/passes/fuse_gradients.h"
#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::bench {

// The step that a plan belongs to. Its facts tell how two steps differ.
struct PlanOrigin {
  std::vector<std::pair<std::string, std::string>> facts;  // {"batch_size", "64"}
  std::uint64_t graph = 0;                                 // hash_of()
};

// A plan in file form. Bytes are device bytes: variables and arena together.
struct SavedPlan {
  std::string policy;
  std::size_t max_fused_grad_add_bytes =
      layers::any_size;           // of the graph: see layers::PipelineOptions
  std::int64_t slices = 1;        // of the batch, in its graph
  std::int64_t row_slices = 1;    // of images along their rows
  std::int64_t dense_slices = 1;  // of dense layers with weights on the host
  bool host_variables = false;    // of its graph: the largest parameters lie on the host
  std::size_t budget = 0;         // of the plan's creation
  std::size_t peak = 0;           // of the plan
  std::size_t host = 0;
  std::size_t enough = 0;        // of plan_memory(): equal values give equal placements
  std::size_t bucket_bytes = 0;  // of the updates in the graph
  // The policy's schedule, without the waits of link(): placement and waits follow from it.
  Schedule schedule;
};

// Returns a hash of everything that a schedule refers to: tensors with their descriptions, nodes
// with their operands. Equal on all ranks of a run.
std::uint64_t hash_of(const Graph& graph);

// Returns the plan with one line for each step of the schedule, with names of ops and tensors.
Json plan_json(const SavedPlan& plan, const PlanOrigin& origin, const Graph& graph);

// Parses a text of plan_json() for the same origin. Throws Error with the difference if it is for
// another step, and with the line if the text is truncated or contains a step that this graph
// lacks; also if an object has a key twice. verify() checks the schedule as a whole.
SavedPlan read_plan(const std::string& text, const PlanOrigin& origin, const Graph& graph);

// Reads the file of --lms_plan_file; errors begin with flag and path.
SavedPlan load_plan(const std::string& path, const PlanOrigin& origin, const Graph& graph);

// The compile sizes with which the graph matches a plan, from a text or a file.
struct PlanSizes {
  std::size_t bucket_bytes = 0, max_fused_grad_add_bytes = layers::any_size;
  std::int64_t slices = 1, row_slices = 1, dense_slices = 1;
  bool host_variables = false;
};
PlanSizes read_plan_sizes(const std::string& text);
PlanSizes load_plan_sizes(const std::string& path);

// The target of --lms_plan_out.
class PlanFile {
 public:
  // Throws Error if the path is not writable.
  explicit PlanFile(const std::string& path);
  void write(const SavedPlan& plan, const PlanOrigin& origin, const Graph& graph) const;

 private:
  OutputFile file_;
};

}  // namespace cnn::bench
