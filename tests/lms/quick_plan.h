#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "lms/evaluate.h"
#include "lms/outline.h"
#include "lms/plan_schedule.h"
#include "lms/planned.h"
#include "lms/policy.h"
#include "lms/search.h"
#include "lms/unroll.h"

namespace cnn::tests {

struct QuickPlan {
  Schedule schedule;
  lms::Outcome outcome;        // placed, linked, simulated
  lms::Evaluation evaluation;  // as the search sees it
};

// Runs the default policy once, with a search that looks at so many steps only: for tests of
// many plans.
inline QuickPlan quick_plan(const lms::Request& request, std::size_t work) {
  const lms::Outline outlined = outline(request);
  const std::size_t target = request.budget.device;
  const lms::Found found =
      search(outlined, {.device_bytes = target,
                        .swaps = request.budget.host > 0,
                        .drops = request.options.recompute != lms::Recomputation::off,
                        .work = work});
  lms::Unroller unroller(outlined);
  lms::Evaluator evaluator(outlined, target);
  const lms::Unrolled& unrolled = unroller.unroll(found.fates);
  const lms::Evaluation evaluation = evaluator.evaluate(unrolled);
  evaluator.tighten(unrolled, 0);
  Schedule schedule = schedule_of(request, outlined, unrolled, evaluator);
  const lms::Outcome outcome = outcome_of(request, schedule);
  return {std::move(schedule), outcome, evaluation};
}

// Bytes that are live at the peak of the thriftiest of the plans that treat all tensors alike.
inline std::size_t thriftiest_bytes(const lms::Request& request) {
  const lms::Outline outlined = outline(request);
  lms::Unroller unroller(outlined);
  lms::Evaluator evaluator(outlined, 0);
  std::size_t least = ~std::size_t{0};
  using lms::Fate;
  for (const Fate fate : {Fate::keep, Fate::swap, Fate::drop, Fate::drop_often}) {
    lms::Fates fates(outlined.roots.size(), Fate::keep);
    for (std::size_t r = 0; r < fates.size(); ++r) {
      const lms::Root& root = outlined.roots[r];
      const bool possible = fate == Fate::swap ? request.budget.host > 0 : root.may_drop;
      fates[r] = root.may_leave && possible ? fate : Fate::keep;
    }
    least = std::min(least, evaluator.evaluate(unroller.unroll(fates)).peak);
  }
  return least;
}

}  // namespace cnn::tests
