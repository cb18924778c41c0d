#pragma once

#include <functional>
#include <string>
#include <utility>

#include "bench/flags/json.h"
#include "bench/report/console.h"
#include "bench/report/divergence.h"
#include "bench/report/observer.h"

namespace cnn::bench {

// Looks for NaN and infinity after the last step of --forward_only. Such a run has no loss that
// would show them, and logits with NaN only lower its accuracy. If there is such a tensor, one line
// on stderr and `non_finite` of the result name it.
class ForwardCheck final : public Observer {
 public:
  using FindTensor = std::function<FirstNonFinite()>;  // of the latest step

  // References must outlive the check.
  ForwardCheck(Console& console, Json& result, FindTensor find_tensor)
      : console_(console), result_(result), find_tensor_(std::move(find_tensor)) {}

  void step_finished(const FinishedStep& /*step*/) override { has_run_ = true; }
  void end(const RunEnd& end) override;

 private:
  Console& console_;
  Json& result_;
  FindTensor find_tensor_;
  bool has_run_ = false;
};

}  // namespace cnn::bench
