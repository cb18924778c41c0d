#pragma once

#include <cstdint>
#include <string>

#include "bench/flags/fault_spec.h"
#include "bench/report/console.h"
#include "bench/report/observer.h"

namespace cnn::bench {

// Says at the end of a run that it did not come to the step of --comm_fault, so that nobody takes
// it for a test of that fault.
class FaultWatch final : public Observer {
 public:
  // Throws Error for an invalid spec. The console must outlive the watch.
  FaultWatch(Console& console, const std::string& spec)
      : console_(console), spec_(spec), fault_(parse_fault_spec(spec)) {}

  void step_finished(const FinishedStep& /*step*/) override { ++steps_; }
  void end(const RunEnd& end) override;

 private:
  Console& console_;
  std::string spec_;
  FaultSpec fault_;
  std::int64_t steps_ = 0;  // finished, warm-up included
};

}  // namespace cnn::bench
