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

// The first tensor of a step that is not finite.
struct FirstNonFinite {
  std::string tensor;          // empty: none is known
  bool of_whole_step = false;  // else of what the step has left in memory
};

// Notices a training whose loss goes to nan or infinity: a line on stderr at the first such step of
// the run, which names the first tensor that is not finite. If the loss stays so there is a line at
// the end and the section "diverged" of the result, which other runs do not have. Its tensor is
// null where the loss had come back and went away again: nothing looks for a second one. For a step
// that --check_finite_step names there is a line whatever its loss is.
class DivergenceWatch final : public Observer {
 public:
  using FindTensor = std::function<FirstNonFinite()>;  // in the latest step

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
    bool weights_are_finite = true;  // before the step
  };
  static std::string name_of(const Since& since);
  void tell();
  void tell_checked();

  Console& console_;
  Json& result_;
  FindTensor find_tensor_;
  std::optional<std::int64_t> checked_step_;  // global number
  bool is_checked_ = false;                   // it is the latest, its loss finite, and untold
  bool was_checked_ = false;
  std::optional<Since> since_;         // the first step of those without a finite loss
  bool is_untold_ = false;             // that step is the latest, and nothing was said of it
  bool has_told_ = false;              // of this or of an earlier divergence
  std::optional<std::string> tensor_;  // the first that was not finite, once it was looked for
};

}  // namespace cnn::bench
