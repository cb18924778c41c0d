#pragma once

#include <array>
#include <string>
#include <string_view>

namespace cnn::bench {

struct LmsFlags;

// Flags that belong to one policy and select it if they are given, even with their defaults.
// --lms_n_tensors belongs to all.
inline constexpr std::array<std::string_view, 6> tflms1_flags{"lms_lb",
                                                              "lms_ub",
                                                              "lms_fuse_swapins",
                                                              "lms_swap_branches",
                                                              "lms_branch_threshold",
                                                              "lms_ctrld_strategy"};
inline constexpr std::array<std::string_view, 3> tflms2_flags{
    "lms_swapout_threshold", "lms_swapin_ahead", "lms_swapin_groupby"};

// Returns the effective policy: the one of --lms_policy, else the one whose flags are given, else
// the default policy.
std::string policy_of(const LmsFlags& flags);

}  // namespace cnn::bench
