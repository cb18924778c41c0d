#pragma once

#include <cstdint>
#include <string>

#include "bench/report/console.h"
#include "bench/report/observer.h"
#include "bench/report/output_file.h"
#include "runtime/timeline.h"

namespace cnn::bench {

inline constexpr std::int64_t traced_step = -1;  // as upstream; the warm-up ends with step 0

// The target of --trace_file: a step's timeline as a Chrome trace.
class TraceFile {
 public:
  // Creates the folder if it is missing. Throws Error if the path is not writable.
  explicit TraceFile(const std::string& path);

  // Throws Error.
  void write(const StepPlan& plan, const Timeline& timeline) const;
  void write(const std::string& trace) const { file_.write(trace); }

 private:
  OutputFile file_;
};

// Writes the trace of the warm-up's second to last step, as upstream does.
class TraceWriter final : public Observer {
 public:
  // References must outlive the writer.
  TraceWriter(Console& console, const std::string& path, const StepPlan& plan);

  bool wants_timeline(std::int64_t step) const override;
  void step_finished(const FinishedStep& step) override;

 private:
  Console& console_;
  std::string path_;
  TraceFile file_;
  const StepPlan& plan_;
};

}  // namespace cnn::bench
