#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bench/report/histogram.h"
#include "data/records/protobuf.h"

namespace cnn::bench {

// The values of one step, as TensorFlow's Summary message.
class Summary {
 public:
  void scalar(std::string_view tag, double value);
  void histogram(std::string_view tag, const Histogram& histogram);
  // png: the encoded image.
  void image(std::string_view tag, std::int64_t height, std::int64_t width,
             std::span<const std::byte> png);
  std::span<const std::byte> message() const { return values_.message(); }

 private:
  data::ProtobufWriter values_;
};

// An event file for TensorBoard: TFRecords of TensorFlow's Event message. Every event is completely
// in the file when its call returns; if it does not fit on the disk, the file keeps none of it.
class EventFile {
 public:
  using Clock = std::chrono::system_clock;

  // Creates the folder if it is missing, and a new file whose name sorts after all event files
  // there: TensorBoard reads them in that order as one run. flag: names the folder in messages.
  // Throws Error.
  EventFile(std::string_view flag, const std::string& folder, Clock::time_point now = Clock::now());
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  const std::string& path() const { return path_; }

  // All following functions throw Error with the flag and the file.
  //
  // Marks the start of a training at this step: TensorBoard drops events of this and later steps
  // from earlier files, which a run resumed from a checkpoint writes again.
  void session_starts(std::int64_t first_step);
  void graph(std::span<const std::byte> graph_def);
  void summary(std::int64_t step, const Summary& summary);

 private:
  void open_new(const std::string& folder, Clock::time_point now);
  void append(const data::ProtobufWriter& event);
  [[noreturn]] void fail(int problem) const;

  std::string flag_;
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;  // of the complete events in the file
};

}  // namespace cnn::bench
