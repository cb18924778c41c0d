#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/flags/config.h"
#include "bench/machine/machine_info.h"
#include "bench/machine/telemetry.h"
#include "bench/report/json_file.h"

namespace cnn::bench {

// The result file of --result_json: what the run was and every number it made. Times in seconds,
// sizes in bytes. An optional without a value is null in the file, or left out where it says so.

struct ResultMachine {
  MachineInfo info;
  std::int64_t cores_used = 0;
  std::string instruction_sets;                                // "avx2 avx512"
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version running
  std::optional<GpuInfo> gpu{};                                // null in the file if a CPU computes
};

struct ResultModel {
  std::string name, data_set;
  std::int64_t image_size = 0, classes = 0;
  std::int64_t trainable_parameters = 0, trainable_tensors = 0;
  double forward_macs = 0;  // of one image
};

struct ResultPlan {
  std::string layout, precision;
  std::int64_t arena_bytes = 0;        // predicted peak
  std::int64_t lower_bound_bytes = 0;  // what the schedule needs at its worst moment
  std::int64_t host_bytes = 0, workspace_bytes = 0;
  std::optional<double> predicted_step_seconds{};
};

struct ResultMemory {
  std::optional<std::int64_t> arena_peak_bytes{};  // measured
  std::optional<std::int64_t> process_peak_bytes{};
};

struct ResultStart {
  double process_to_first_step = 0, build = 0, plan = 0, warm_up = 0;
};

struct ResultStep {
  std::int64_t step = 0;  // timed steps, from 1
  double seconds = 0, images_per_sec = 0;
  double loss = 0;  // as reported
  double base_loss = 0, total_loss = 0, learning_rate = 0, input_wait_seconds = 0;
  std::optional<double> top_1{}, top_5{};  // left out if not asked for
};

struct ResultSummary {
  double images_per_sec = 0, uncertainty = 0, jitter = 0;
  double total_images_per_sec = 0, median_step_seconds = 0;
  std::optional<double> percent_of_roofline{};
};

struct ResultEvaluation {
  std::int64_t global_step = 0, examples = 0;
  double top_1 = 0, top_5 = 0;
  double base_loss = 0;  // mean over examples
  double images_per_sec = 0;
};

// What --simulate says about the machine that it names.
struct ResultSimulation {
  struct Op {
    std::string op;
    std::int64_t nodes = 0;
    double seconds = 0, bytes = 0, flops = 0;  // of all these nodes
  };

  std::string machine, source;  // of the two ceilings
  std::string fusion;
  double flops_per_second = 0, bytes_per_second = 0;
  double step_seconds = 0, images_per_sec = 0;  // predicted
  double roofline_images_per_sec = 0;           // each operand moved once
  double arithmetic_images_per_sec = 0;
  double flops_per_image = 0, bytes_per_image = 0;
  std::int64_t memory_limit = 0, workspace_bytes = 0, largest_batch = 0;
  std::int64_t library_convolutions = 0, own_convolutions = 0;
  std::vector<Op> by_op{};  // most seconds first
};

// Filled while the run goes on; parts that were never reached are null in the file.
struct ResultRecord {
  std::string version;
  std::optional<std::string> commit{};
  std::vector<std::string> command{};  // argv
  std::chrono::system_clock::time_point started{};
  Config config{};
  std::optional<ResultMachine> machine{};
  std::optional<ResultModel> model{};
  std::optional<ResultPlan> plan{};
  ResultMemory memory{};
  std::optional<ResultStart> start{};
  std::vector<ResultStep> steps{};
  std::vector<double> warm_up_losses{};  // total loss of each warm-up step
  std::optional<ResultSummary> summary{};
  std::vector<ResultEvaluation> evaluation{};
  std::optional<Telemetry> telemetry{};          // of the timed steps; left out if nothing tells
  std::optional<ResultSimulation> simulation{};  // left out if the run was a real one
  std::optional<std::string> error{};  // what ended the run early; left out if nothing did
};

// Every flag with the value in force; older names of flags are left out.
Json config_json(const Config& config);

Json result_json(const ResultRecord& record);

// Throws Error if the file cannot be written.
void write_result(const std::string& path, const ResultRecord& record);

// UTC with microseconds: 2026-01-31T12:00:00.000000Z.
std::string utc_text(std::chrono::system_clock::time_point when);

}  // namespace cnn::bench
