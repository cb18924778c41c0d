#pragma once

#include <cstdint>
#include <optional>

#include "bench/flags/json.h"
#include "bench/report/console.h"
#include "bench/report/observer.h"

namespace cnn::bench {

// Notices a training whose loss went to nan or infinity and stayed there: a line on stderr at the
// end and the section "diverged" of the result, which other runs do not have.
class DivergenceWatch final : public Observer {
 public:
  // References must outlive the watch.
  DivergenceWatch(Console& console, Json& result) : console_(console), result_(result) {}

  void step_finished(const FinishedStep& step) override;
  void end(const RunEnd& end) override;
  void failed(const RunEnd& end, std::string_view what) override;

 private:
  struct Since {
    std::int64_t number = 0, global_step = 0;
    double loss = 0;
  };

  Console& console_;
  Json& result_;
  std::optional<Since> since_;  // the first step of those without a finite loss
};

}  // namespace cnn::bench
