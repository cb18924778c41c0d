#pragma once

#include <chrono>

#include "bench/flags/json.h"
#include "bench/report/console.h"
#include "bench/report/input_use.h"
#include "bench/report/observer.h"
#include "data/dataset.h"

namespace cnn::bench {

// Fills the section "input" of the result file for a run on image files, and notes on stderr if the
// run waited for input, for how long, and what would help.
class InputRecord final : public Observer {
 public:
  struct Options {
    int threads = 1;  // input threads of all devices of this process
    int cores = 1;
    std::int64_t batch = 0;  // images per step of this process
  };
  // References must outlive the record.
  InputRecord(const data::Dataset& dataset, Options options, Console& console, Json& result)
      : dataset_(dataset), options_(options), console_(console), result_(result) {}

  void timing_starts() override;
  void step_finished(const FinishedStep& step) override;
  void end(const RunEnd& end) override;
  void failed(const RunEnd& end, std::string_view what) override;

 private:
  const data::Dataset& dataset_;
  Options options_;
  Console& console_;
  Json& result_;
  data::InputStatistics start_;
  std::chrono::steady_clock::time_point start_time_;
  double waited_ = 0, step_seconds_ = 0;
};

}  // namespace cnn::bench
