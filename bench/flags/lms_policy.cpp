#include "bench/flags/lms_policy.h"

#include "bench/flags/config.h"

namespace cnn::bench {

std::string policy_of(const LmsFlags& flags) {
  if (flags.policy) {
    return *flags.policy;
  }
  return flags.tflms1_is_given ? "tflms1" : flags.tflms2_is_given ? "tflms2" : "planned";
}

}  // namespace cnn::bench
