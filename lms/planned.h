#pragma once

#include <cstddef>

#include "lms/evaluate.h"
#include "lms/outline.h"
#include "lms/policy.h"
#include "lms/unroll.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// What a plan makes of its step: bytes of the arena as placed, and simulated seconds.
struct Outcome {
  std::size_t device_bytes = 0, host_bytes = 0;
  double seconds = 0;
};
Outcome outcome_of(const Request& request, const Schedule& schedule);

// Bytes of the arena that the thriftiest plan takes, as placed: any budget from there on has a
// plan.
std::size_t floor_bytes(const Request& request);

// The schedule of an unrolled step with its copies and their waits, and those that the sync mode of
// the request asks for.
Schedule schedule_of(const Request& request, const Outline& outline, const Unrolled& unrolled,
                     const Evaluator& evaluated);

}  // namespace cnn::lms
