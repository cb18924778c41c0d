#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/flags/sizes.h"
#include "bench/report/statistics.h"

namespace cnn::bench {

// Formats every line of stdout exactly like upstream, without the final line break unless several
// lines are returned. Prints nothing.

struct Header {
  std::string version{};  // "0.1"
  std::string model{};    // printed name
  std::string dataset{};
  bool synthetic = true;
  Mode mode = Mode::training;
  bool single_session = false;
  std::int64_t global_batch = 0;
  std::int64_t per_device_batch = 0;
  std::int64_t batch_group_size = 1;
  Length length{};
  double min_time = 0;                 // seconds; replaces the length unless 0
  std::vector<std::string> devices{};  // "/cpu:0"
  bool numa_bind = false;
  std::string data_format{};
  std::string optimizer{};
  std::string variable_update{};
  // Lines that are printed only if set.
  std::optional<std::string> rewriter_config{};
  std::optional<std::string> all_reduce{};
  std::optional<bool> sync{};
  bool staged_vars = false;
  std::optional<std::string> horovod_device{};
};

// Returns the header members that flags decide, without version, model, sizes and devices.
Header header_of(const Config& config);

std::vector<std::string> header_lines(const Header& header);

struct Accuracy {
  double top_1 = 0;
  double top_5 = 0;
};

std::string title_line(std::string_view loss_type, bool accuracies);
std::string step_line(std::int64_t step, const Speed& speed, double loss,
                      const std::optional<Accuracy>& accuracy = std::nullopt);
bool is_displayed(std::int64_t step, std::int64_t display_every);  // steps count from 1

// Returns dashes, total images/sec, dashes.
std::vector<std::string> total_lines(double images_per_second);

std::string eval_step_line(std::int64_t step, double examples_per_second);
bool is_displayed_in_eval(std::int64_t step, std::int64_t display_every);
std::string accuracy_line(const Accuracy& accuracy, std::int64_t examples);

std::string loaded_line(std::string_view checkpoint);
std::string not_found_line(std::string_view folder);
std::string eval_start_line(std::int64_t global_step);
std::string final_eval_line(std::int64_t global_step);
std::string early_stop_line(double accuracy);
std::string warm_up_line(std::int64_t warm_up);  // after rounding up to a batch group
std::string trace_line(std::string_view file);

// Returns "step time: p50 33.53 ms, p90 70.49 ms, p99 88.04 ms of 12 steps", for stderr.
std::string percentiles_line(std::span<const double> step_seconds);

// Constant lines.
inline constexpr std::string_view training_model_line = "Generating training model";
inline constexpr std::string_view evaluation_model_line = "Generating evaluation model";
inline constexpr std::string_view initializing_line = "Initializing graph";
inline constexpr std::string_view running_warm_up_line = "Running warm up";
inline constexpr std::string_view done_warm_up_line = "Done warm up";
inline constexpr std::string_view done_training_line = "Done with training";
inline constexpr std::string_view resuming_line = "Resuming training";

// The progress and remaining time of a run, for a terminal only (stderr), without a line break.
struct Progress {
  std::int64_t done = 0;
  std::int64_t total = 0;
  double average_seconds = 0;  // per step
  double images_per_second = 0;
};
std::string progress_line(const Progress& progress);

}  // namespace cnn::bench
