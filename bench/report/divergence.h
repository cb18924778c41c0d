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

// The first non-finite tensor of a step.
struct FirstNonFinite {
  std::string tensor;          // empty: unknown
  bool of_whole_step = false;  // false: only tensors still in memory were checked
};

// Detects a loss that becomes nan or infinite. At the first such step of the run, a line on stderr
// names the first non-finite tensor. If the loss stays non-finite, there is a line at the end and
// the section "diverged" of the result, which other runs lack. Its tensor is null if the loss had
// recovered and diverged again: only the first divergence is searched. For the step of
// --check_finite_step there is always a line.
class DivergenceWatch final : public Observer {
 public:
  using FindTensor = std::function<FirstNonFinite()>;  // of the latest step

  // References must outlive the watch.
  DivergenceWatch(Console& console, Json& result, FindTensor find_tensor,
                  std::optional<std::int64_t> checked_step = {})
      : console_(console),
        result_(result),
        find_tensor_(std::move(find_tensor)),
        checked_step_(checked_step) {}

  void step_finished(const FinishedStep& step) override;
  bool work_is_due(const FinishedStep&) const override { return is_untold_ || is_checked_; }
  Next work(const FinishedStep&) override;
  void end(const RunEnd& end) override;
  void failed(const RunEnd& end, std::string_view what) override;

 private:
  struct Since {
    std::int64_t number = 0, global_step = 0;
    double loss = 0;
    double l2 = 0;  // of the weights before the step
  };
  static std::string name_of(const Since& since);
  void tell();
  void tell_checked();

  Console& console_;
  Json& result_;
  FindTensor find_tensor_;
  std::optional<std::int64_t> checked_step_;  // global step
  // The checked step is the latest, its loss finite, and not yet reported.
  bool is_checked_ = false;
  bool was_checked_ = false;
  std::optional<Since> since_;         // the first step of the current non-finite streak
  bool is_untold_ = false;             // that step is the latest and not yet reported
  bool has_told_ = false;              // this or an earlier divergence was reported
  std::optional<std::string> tensor_;  // the first non-finite tensor, once searched
};

}  // namespace cnn::bench
