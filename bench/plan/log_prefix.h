#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace cnn::bench {

// Returns the start of a log line as the original of an LMS policy prints it, so that its parsers
// find what they look for: that of absl for Python before lines of tflms2, that of glog before
// lines of caffe, "I1125 09:05:07.000042   123 syncedmem.cpp:349] ", in local time. Empty for other
// policies, whose originals print bare lines or none.
std::string log_prefix(std::string_view policy, std::chrono::system_clock::time_point when,
                       int thread);

}  // namespace cnn::bench
