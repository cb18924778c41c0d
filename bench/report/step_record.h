#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bench/flags/json.h"
#include "bench/report/observer.h"

namespace cnn::bench {

// A timed step in the result file.
struct ResultStep {
  std::int64_t step = 0;  // from 1
  double seconds = 0, images_per_sec = 0;
  double ended = 0;  // seconds of the host's steady clock, which all its programs share
  double loss = 0;   // the reported loss
  double base_loss = 0, total_loss = 0, learning_rate = 0, input_wait_seconds = 0;
  std::optional<double> top_1{}, top_5{};  // omitted if not requested
};
Json to_json(const ResultStep& step);

// Returns section "summary"; percent_of_roofline is null until it is measured. ewma_weight: see
// speed().
Json summary_json(const RunEnd& end, std::int64_t global_batch, double ewma_weight);

// Records every step for the sections "steps", "warm_up_losses" and "summary" of the result file,
// and times the warm-up for "start".
class StepRecord final : public Observer {
 public:
  struct Options {
    bool accuracies = false;
    double ewma_weight = 0;  // see speed()
  };
  // The result must outlive the record.
  StepRecord(Json& result, Options options) : result_(result), options_(options) {}

  void start(const RunStart& run) override;
  void timing_starts() override;
  void step_finished(const FinishedStep& step) override;
  void end(const RunEnd& end) override;
  void failed(const RunEnd& end, std::string_view what) override;

 private:
  Json& result_;
  Options options_;
  std::int64_t global_batch_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::vector<ResultStep> steps_;
  std::vector<double> warm_up_losses_;
};

}  // namespace cnn::bench
