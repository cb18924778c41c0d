#include "bench/run/roofline_report.h"

#include <fmt/format.h>
#include <optional>

#include "bench/machine/roofline.h"

namespace cnn::bench {
namespace {

// The arena is still there: a device that it fills has no room for operands of a measurement.
std::optional<Ceilings> try_to_measure(const Backend& backend, DataType compute, Console& console) {
  try {
    return measure_ceilings(backend, compute);
  } catch (const std::exception& error) {
    console.note(fmt::format("the device's ceilings were not measured: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace

void add_roofline(const Job& job, const Backend& backend, const StepPlan& plan, Console& console,
                  Json& result) {
  Json& summary = result["summary"];
  if (summary.is_null()) {
    return;
  }
  const std::optional<Ceilings> ceilings = try_to_measure(backend, job.compute, console);
  if (!ceilings) {
    return;
  }
  const double limit = roofline_seconds(plan, *ceilings);
  const double median = summary["median_step_seconds"];
  const double percent = 100 * limit / median;
  summary["percent_of_roofline"] = percent;
  console.note(fmt::format(
      "speed: median step {:.4f} s, {:.1f} % of the roofline ({:.1f} images/sec at {:.0f} GFLOP/s "
      "and {:.1f} GB/s, measured on this device after the last step)",
      median, percent, static_cast<double>(job.batch.per_device) / limit,
      ceilings->flops_per_second * 1e-9, ceilings->bytes_per_second * 1e-9));
  if (const double share = share_of_operations(plan); share < 1) {
    console.note(fmt::format(
        "speed: Winograd's algorithm needs {:.0f} % of the operations that the layers define; the "
        "roofline counts what is needed (--nowinograd_nonfused computes them all)",
        100 * share));
  }
}

}  // namespace cnn::bench
