#pragma once

#include <cstdint>
#include <string>

#include "bench/flags/json.h"
#include "data/dataset.h"

namespace cnn::bench {

// The work of this process's input pipeline over some time.
struct InputUse {
  data::InputStatistics read;  // in that time, including prefetched images
  std::int64_t images = 0;     // consumed by steps
  int threads = 1;             // that read and preprocess, for all devices
  int cores = 1;               // of the host
  double seconds = 0;          // wall time
  double waited = 0;           // seconds of it in which no batch was ready
  double cpu_seconds = 0;      // CPU time of the whole process; 0 if steps compute on the CPU too
};

// Returns section "input" of the result file.
Json input_json(const InputUse& use);

// Returns one line: speed, and the shares of reading, decoding, resizing and idling in the threads'
// time.
std::string input_line(const InputUse& use);

// Returns "2 broken examples were left out".
std::string skipped_text(const data::InputStatistics& read);

// Returns whether reading, decoding and resizing took a share of the threads' time. If not, nothing
// shows what would make the input faster.
bool has_busy_threads(const InputUse& use);

// Returns advice for a faster input: another disk, more threads or smaller images.
std::string input_advice(const InputUse& use);

// Returns the difference of two readings.
data::InputStatistics since(const data::InputStatistics& now, const data::InputStatistics& then);

}  // namespace cnn::bench
