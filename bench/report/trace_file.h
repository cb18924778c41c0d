#pragma once

#include <cstdint>
#include <string>

#include "bench/report/console.h"
#include "bench/report/observer.h"
#include "bench/report/output_file.h"
#include "runtime/timeline.h"

namespace cnn::bench {

inline constexpr std::int64_t traced_step = -1;  // as the original; the warm-up ends with 0

// Where --trace_file goes: a step's timeline as a Chrome trace.
class TraceFile {
 public:
  // Makes the folder if it is missing. Throws Error if the path cannot be written.
  explicit TraceFile(const std::string& path);

  // Throws Error.
  void write(const StepPlan& plan, const Timeline& timeline) const;
  void write(const std::string& trace) const { file_.write(trace); }

 private:
  OutputFile file_;
};

// Writes the trace of the last but one step of the warm-up, as the original does.
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
