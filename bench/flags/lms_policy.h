#pragma once

#include <string>

namespace cnn::bench {

struct LmsFlags;

// Whether any flag of that policy alone is set. --lms_n_tensors belongs to all.
bool tflms1_is_set(const LmsFlags& flags);
bool tflms2_is_set(const LmsFlags& flags);

// The policy in force: the one that --lms_policy names, else the one whose flags are set, else our
// own.
std::string policy_of(const LmsFlags& flags);

}  // namespace cnn::bench
