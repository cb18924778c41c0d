#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "bench/flags/json.h"
#include "bench/report/console.h"
#include "bench/report/observer.h"

namespace cnn::bench {

// Notices a training whose loss goes to nan or infinity: a line on stderr at the first such step,
// which names the first tensor that is not finite. If the loss stays so there is a line at the end
// and the section "diverged" of the result, which other runs do not have.
class DivergenceWatch final : public Observer {
 public:
  // Names a tensor of the latest step; empty: none is known.
  using FindTensor = std::function<std::string()>;

  // References must outlive the watch.
  DivergenceWatch(Console& console, Json& result, FindTensor find_tensor)
      : console_(console), result_(result), find_tensor_(std::move(find_tensor)) {}

  void step_finished(const FinishedStep& step) override;
  bool work_is_due(const FinishedStep&) const override { return is_untold_; }
  Next work(const FinishedStep&) override;
  void end(const RunEnd& end) override;
  void failed(const RunEnd& end, std::string_view what) override;

 private:
  struct Since {
    std::int64_t number = 0, global_step = 0;
    double loss = 0;
    bool weights_are_finite = true;  // before the step
  };
  static std::string name_of(const Since& since);
  void tell();

  Console& console_;
  Json& result_;
  FindTensor find_tensor_;
  std::optional<Since> since_;         // the first step of those without a finite loss
  bool is_untold_ = false;             // that step is the latest, and nothing was said of it
  std::optional<std::string> tensor_;  // that was not finite first, once it was looked for
};

}  // namespace cnn::bench
