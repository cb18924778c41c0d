#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace cnn::bench {

// Returns the prefix of a log line as the original implementation of an LMS policy prints it, so
// that parsers of its logs work: the prefix of absl for Python for tflms2, that of glog for caffe,
// such as "I1125 09:05:07.000042   123 syncedmem.cpp:349] ", in local time. Empty for other
// policies, whose originals print no prefix or no lines.
std::string log_prefix(std::string_view policy, std::chrono::system_clock::time_point when,
                       int thread);

}  // namespace cnn::bench
