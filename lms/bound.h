#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "lms/policy.h"
#include "lms/pressure.h"

namespace cnn::lms {

// A lower bound of the step time over all plans that run the compute steps in the request's order
// and, for tensors that its options let leave, copy them out and back or recompute them between
// creation and last use, any number of times with Options::within_pass. Infinite: no such plan
// exists.
struct Bound {
  double seconds = 0;
  double seconds_swap_only = 0;  // of plans without recomputation
  double seconds_fluid = 0;      // where parts of tensors may leave: without stall_windows.h
  std::size_t min_bytes = 0;     // of the arena, below which no such plan exists
};

// For each op that exceeds the budget without a plan, some bytes must leave before it starts and
// return after it: over a link, or by recomputation. For k seconds of recomputation in total, the
// most bytes that it can free at each op are a fractional knapsack; the rest takes link time before
// one op and after the same or a later one. The bound is the minimum over k, or that of
// stall_windows.h, which is larger near the smallest budget. Takes about 10 ms for a thousand
// nodes.
Bound lower_bound(const Request& request);
// Returns the bound for a known pressure.
Bound lower_bound(const Request& request, const Pressure& pressure);

// Lower bounds in seconds of one request for many arena budgets: all share one pressure, and each
// bound is computed once. The request must outlive it. Calls from several threads are safe.
class BudgetBounds {
 public:
  explicit BudgetBounds(const Request& request);
  double seconds(std::size_t device_bytes);

 private:
  const Request& request_;
  Pressure pressure_;
  std::mutex mutex_;
  std::map<std::size_t, double> known_;  // seconds by bytes
};

// Returns a lower bound of a given schedule's seconds, such as a file's. That schedule may move
// tensors that the options keep, so the options are ignored; whether tensors leave within a pass is
// read from it. If it reorders the nodes, or moves other tensors than activations and inputs, the
// bound is the time of all nodes.
double lower_bound_of(const Request& request, const Schedule& schedule);

}  // namespace cnn::lms
