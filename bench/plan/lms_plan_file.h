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

// The step that a plan belongs to. The facts say in what two steps differ.
struct PlanOrigin {
  std::vector<std::pair<std::string, std::string>> facts;  // {"batch_size", "64"}
  std::uint64_t graph = 0;                                 // hash_of()
};

// A plan as a file keeps it. Bytes are of the device: variables and arena together.
struct SavedPlan {
  std::string policy;
  std::size_t max_fused_grad_add_bytes =
      layers::any_size;    // of the graph: see layers::PipelineOptions
  std::size_t budget = 0;  // that it was made for
  std::size_t peak = 0;    // that it takes
  std::size_t host = 0;
  std::size_t enough = 0;        // of plan_memory(): equal values place equal schedules alike
  std::size_t bucket_bytes = 0;  // of the updates in its graph
  // As the policy made it, without the waits that link() adds: places and waits follow from it.
  Schedule schedule;
};

// Hashes all that a schedule speaks about: tensors with their descriptions, nodes with their
// operands. The same for all ranks of a run.
std::uint64_t hash_of(const Graph& graph);

// One line for each step of the schedule, with the names of ops and tensors.
Json plan_json(const SavedPlan& plan, const PlanOrigin& origin, const Graph& graph);

// The plan of a text that plan_json() made for the same origin. Throws Error that says what differs
// where it is for another step, and in which line where the text is cut off or was changed to what
// is no step of this graph. Whether the schedule as a whole is right is the business of verify().
SavedPlan read_plan(const std::string& text, const PlanOrigin& origin, const Graph& graph);

// The same of the file that --lms_plan_file names; errors begin with flag and path.
SavedPlan load_plan(const std::string& path, const PlanOrigin& origin, const Graph& graph);

// The sizes that the graph is to be compiled with, to be that of the plan of a text, or of a file.
struct PlanSizes {
  std::size_t bucket_bytes = 0, max_fused_grad_add_bytes = layers::any_size;
};
PlanSizes read_plan_sizes(const std::string& text);
PlanSizes load_plan_sizes(const std::string& path);

// Where --lms_plan_out goes.
class PlanFile {
 public:
  // Throws Error if the path cannot be written.
  explicit PlanFile(const std::string& path);
  void write(const SavedPlan& plan, const PlanOrigin& origin, const Graph& graph) const;

 private:
  OutputFile file_;
};

}  // namespace cnn::bench
