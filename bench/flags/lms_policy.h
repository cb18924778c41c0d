#pragma once

#include <array>
#include <string>
#include <string_view>

namespace cnn::bench {

struct LmsFlags;

// Flags of one policy alone, which select it where they are given, be it with their defaults.
// --lms_n_tensors belongs to all.
inline constexpr std::array<std::string_view, 6> tflms1_flags{"lms_lb",
                                                              "lms_ub",
                                                              "lms_fuse_swapins",
                                                              "lms_swap_branches",
                                                              "lms_branch_threshold",
                                                              "lms_ctrld_strategy"};
inline constexpr std::array<std::string_view, 3> tflms2_flags{
    "lms_swapout_threshold", "lms_swapin_ahead", "lms_swapin_groupby"};

// The policy in force: the one that --lms_policy names, else the one whose flags are given, else
// our own.
std::string policy_of(const LmsFlags& flags);

}  // namespace cnn::bench
