#include "bench/report/reporter.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "bench/flags/number_text.h"

namespace cnn::bench {

namespace {

constexpr std::size_t label_width = 13;

std::string labelled(std::string_view label, std::string_view value) {
  return fmt::format("{:<{}}{}", label, label_width, value);
}

std::string_view yes_no(bool value) { return value ? "True" : "False"; }

std::string dashes() { return std::string(64, '-'); }

void add_batch_lines(const Header& header, std::vector<std::string>& lines) {
  lines.push_back(labelled("Batch size:", fmt::format("{} global", header.global_batch)));
  lines.push_back(labelled("", fmt::format("{} per device", header.per_device_batch)));
  if (header.batch_group_size > 1) {
    // The misspelling is upstream's, and tools search for it.
    lines.push_back(
        labelled("", fmt::format("{} batches per prepocessing group", header.batch_group_size)));
  }
}

void add_length_lines(const Header& header, std::vector<std::string>& lines) {
  if (header.min_time > 0) {  // upstream has no such run
    lines.push_back(
        labelled("Num batches:", fmt::format("as many as take {:g} s", header.min_time)));
    return;
  }
  lines.push_back(labelled("Num batches:", fmt::format("{}", header.length.batches)));
  lines.push_back(labelled("Num epochs:", fixed(header.length.epochs, 2)));
}

}  // namespace

Header header_of(const Config& config) {
  Header header{.dataset = std::string(config.data.row().name),
                .synthetic = !config.data.dir.has_value(),
                .mode = mode_of(config),
                .batch_group_size = config.size.batch_group,
                .numa_bind = config.cpu.numa_affinity,
                .data_format = std::string(word_of(config.report.data_format)),
                .optimizer = std::string(layers::row_of(config.optimizer.rule).name),
                .variable_update = std::string(word_of(config.variable_update)),
                .rewriter_config = config.report.rewriter_config};
  const VariableUpdate update = config.variable_update;
  if (update == VariableUpdate::replicated || update == VariableUpdate::distributed_all_reduce ||
      update == VariableUpdate::collective_all_reduce) {
    header.all_reduce = config.comm.spec.value_or("None");
  }
  if (update == VariableUpdate::horovod && !config.report.horovod_device.empty()) {
    header.horovod_device = config.report.horovod_device;
  }
  return header;
}

std::vector<std::string> header_lines(const Header& header) {
  const std::string dataset = header.dataset + (header.synthetic ? " (synthetic)" : "");
  std::vector<std::string> lines{labelled("Program:", "cnn_benchmarks " + header.version),
                                 labelled("Model:", header.model), labelled("Dataset:", dataset),
                                 labelled("Mode:", mode_name(header.mode)),
                                 labelled("SingleSess:", yes_no(header.single_session))};
  add_batch_lines(header, lines);
  add_length_lines(header, lines);
  lines.push_back(labelled("Devices:", quoted_list(header.devices)));
  lines.push_back(labelled("NUMA bind:", yes_no(header.numa_bind)));
  lines.push_back(labelled("Data format:", header.data_format));
  if (header.rewriter_config) {
    lines.push_back("RewriterConfig: " + *header.rewriter_config);
  }
  lines.push_back(labelled("Optimizer:", header.optimizer));
  lines.push_back(labelled("Variables:", header.variable_update));
  if (header.all_reduce) {
    lines.push_back(labelled("AllReduce:", *header.all_reduce));
  }
  if (header.sync) {
    lines.push_back(labelled("Sync:", yes_no(*header.sync)));
  }
  if (header.staged_vars) {
    lines.push_back("Staged vars: True");
  }
  if (header.horovod_device) {
    lines.push_back(labelled("Horovod on:", *header.horovod_device));
  }
  lines.emplace_back("==========");
  return lines;
}

std::string title_line(std::string_view loss_type, bool accuracies) {
  return fmt::format("Step\tImg/sec\t{}{}", loss_type,
                     accuracies ? "\ttop_1_accuracy\ttop_5_accuracy" : "");
}

std::string step_line(std::int64_t step, const Speed& speed, double loss,
                      const std::optional<Accuracy>& accuracy) {
  std::string line =
      fmt::format("{}\timages/sec: {} +/- {} (jitter = {})\t{}", step, fixed(speed.mean, 1),
                  fixed(speed.uncertainty, 1), fixed(speed.jitter, 1), fixed(loss, 3));
  if (accuracy) {
    line += fmt::format("\t{}\t{}", fixed(accuracy->top_1, 3), fixed(accuracy->top_5, 3));
  }
  return line;
}

bool is_displayed(std::int64_t step, std::int64_t display_every) {
  return step == 1 || is_displayed_in_eval(step, display_every);
}

std::vector<std::string> total_lines(double images_per_second) {
  return {dashes(), fmt::format("total images/sec: {}", fixed(images_per_second, 2)), dashes()};
}

std::string eval_step_line(std::int64_t step, double examples_per_second) {
  return fmt::format("{}\t{} examples/sec", step, fixed(examples_per_second, 1));
}

bool is_displayed_in_eval(std::int64_t step, std::int64_t display_every) {
  return step > 0 && step % display_every == 0;
}

std::string accuracy_line(const Accuracy& accuracy, std::int64_t examples) {
  return fmt::format("Accuracy @ 1 = {} Accuracy @ 5 = {} [{} examples]", fixed(accuracy.top_1, 4),
                     fixed(accuracy.top_5, 4), examples);
}

std::string loaded_line(std::string_view checkpoint) {
  return fmt::format("Successfully loaded model from {}.", checkpoint);
}

std::string not_found_line(std::string_view folder) {
  return fmt::format("Checkpoint not found in {}", folder);
}

std::string eval_start_line(std::int64_t global_step) {
  return fmt::format("Running evaluation at global_step {}", global_step);
}

std::string final_eval_line(std::int64_t global_step) {
  return fmt::format("Running final evaluation at global_step {}", global_step);
}

std::string early_stop_line(double accuracy) {
  return fmt::format("Stopping, as eval accuracy at least {} was reached", shortest(accuracy));
}

std::string warm_up_line(std::int64_t warm_up) {
  return fmt::format("Round up warm up steps to {} to match batch_group_size", warm_up);
}

std::string trace_line(std::string_view file) { return fmt::format("Dumping trace to {}", file); }

std::string percentiles_line(std::span<const double> step_seconds) {
  const std::vector<double> seconds(step_seconds.begin(), step_seconds.end());
  const auto milliseconds = [&](double share) { return 1e3 * percentile(seconds, share); };
  return fmt::format("step time: p50 {:.2f} ms, p90 {:.2f} ms, p99 {:.2f} ms of {} steps",
                     milliseconds(0.5), milliseconds(0.9), milliseconds(0.99), seconds.size());
}

std::string progress_line(const Progress& progress) {
  const double left =
      static_cast<double>(progress.total - progress.done) * progress.average_seconds;
  const auto seconds = static_cast<std::int64_t>(std::ceil(std::clamp(left, 0.0, 1e9)));
  return fmt::format("step {} of {}, {} images/sec, {}:{:02}:{:02} left", progress.done,
                     progress.total, fixed(progress.images_per_second, 1), seconds / 3600,
                     seconds / 60 % 60, seconds % 60);
}

}  // namespace cnn::bench
