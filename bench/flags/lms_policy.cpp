#include "bench/flags/lms_policy.h"

#include "bench/flags/config.h"

namespace cnn::bench {

bool tflms1_is_set(const LmsFlags& flags) {
  const LmsFlags usual;
  return flags.lb != usual.lb || flags.ub != usual.ub || flags.fuse_swapins ||
         flags.swap_branches || flags.branch_threshold != usual.branch_threshold ||
         flags.ctrld_strategy != usual.ctrld_strategy;
}

bool tflms2_is_set(const LmsFlags& flags) {
  const LmsFlags usual;
  return flags.swapout_threshold != usual.swapout_threshold ||
         flags.swapin_ahead != usual.swapin_ahead || flags.swapin_groupby != usual.swapin_groupby;
}

std::string policy_of(const LmsFlags& flags) {
  if (flags.policy) {
    return *flags.policy;
  }
  if (tflms1_is_set(flags)) {
    return "tflms1";
  }
  return tflms2_is_set(flags) ? "tflms2" : "planned";
}

}  // namespace cnn::bench
