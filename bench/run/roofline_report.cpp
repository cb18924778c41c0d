#include "bench/run/roofline_report.h"

#include <string>

#include "bench/machine/ceilings.h"
#include "bench/machine/roofline.h"

namespace cnn::bench {

std::optional<Ceilings> add_roofline(const Job& job, const Backend& backend, const StepPlan& plan,
                                     Console& console, Json& result) {
  Json& summary = result["summary"];
  if (summary.is_null() || !job.config->report.measure_ceilings) {
    return std::nullopt;
  }
  const MeasuredCeilings measured = measure_ceilings(backend, job.compute);
  if (measured.ceilings) {
    const Roofline roofline =
        compare_with_roofline(plan, *measured.ceilings,
                              {.median_seconds = summary["median_step_seconds"],
                               .batch = static_cast<double>(job.batch.per_device)});
    summary["percent_of_roofline"] = roofline.percent;
    for (const std::string& line : roofline.lines) {
      console.note(line);
    }
  }
  for (const std::string& note : measured.notes) {
    console.note(note);
  }
  return measured.ceilings;
}

}  // namespace cnn::bench
