#pragma once

#include <cstdint>
#include <string>

#include "bench/flags/json.h"
#include "data/dataset.h"

namespace cnn::bench {

// The work of an input pipeline over some time, in this process.
struct InputUse {
  data::InputStatistics read;  // of that time; images that were read ahead included
  std::int64_t images = 0;     // that steps took
  int threads = 1;             // that read and preprocess, of all devices
  int cores = 1;               // of the host
  double seconds = 0;          // of the wall clock
  double waited = 0;           // of them: no batch was ready
  double cpu_seconds = 0;      // of the processors, of the whole process; 0 where steps compute too
};

// Section "input" of the result file.
Json input_json(const InputUse& use);

// One line: speed, share of reading, decoding, resizing and idling in the threads' time.
std::string input_line(const InputUse& use);

// Advice that would make the input faster: another disk, more threads or smaller images.
std::string input_advice(const InputUse& use);

// The difference of two readings.
data::InputStatistics since(const data::InputStatistics& now, const data::InputStatistics& then);

}  // namespace cnn::bench
