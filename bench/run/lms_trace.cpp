#include "bench/run/lms_trace.h"

#include "bench/flags/json.h"
#include "bench/session/session.h"
#include "data/json/parse_json.h"

namespace cnn::bench {

std::string planned_and_measured(const StepPlan& plan, const Timeline& planned,
                                 const Timeline& measured) {
  Json trace = data::parse_json<Json>(chrome_trace(plan, planned, "planned"));
  Json beside = data::parse_json<Json>(chrome_trace(plan, measured, "measured"));
  for (Json& event : beside["traceEvents"]) {
    event["pid"] = 1;
    trace["traceEvents"].push_back(std::move(event));
  }
  return trace.dump() + "\n";
}

void write_planned(const std::string& path, const Session& session) {
  const OutputFile file("--lms_trace", with_folder(path));
  file.write(chrome_trace(session.plan(), session.lms()->timeline, "planned"));
}

LmsTrace::LmsTrace(const std::string& path, const Session& session)
    : file_("--lms_trace", with_folder(path)), session_(session) {}

void LmsTrace::step_finished(const FinishedStep& step) {
  if (step.number == 1 && step.timeline != nullptr) {
    file_.write(planned_and_measured(session_.plan(), session_.lms()->timeline, *step.timeline));
  }
}

}  // namespace cnn::bench
