#include "bench/report/trace_file.h"

#include "bench/report/reporter.h"

namespace cnn::bench {
TraceFile::TraceFile(const std::string& path) : file_("--trace_file", with_folder(path)) {}

void TraceFile::write(const StepPlan& plan, const Timeline& timeline) const {
  file_.write(chrome_trace(plan, timeline, "cnn_benchmarks"));
}

TraceWriter::TraceWriter(Console& console, const std::string& path, const StepPlan& plan)
    : console_(console), path_(path), file_(path), plan_(plan) {}

bool TraceWriter::wants_timeline(std::int64_t step) const { return step == traced_step; }

void TraceWriter::step_finished(const FinishedStep& step) {
  if (step.timeline != nullptr && step.number == traced_step) {
    console_.print(trace_line(path_));
    file_.write(plan_, *step.timeline);
  }
}

}  // namespace cnn::bench
