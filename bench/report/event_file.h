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

// The values of one step, as TensorFlow's message Summary.
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

// A file of TensorBoard's events: TFRecords of TensorFlow's message Event. Every event is in the
// file when its call returns, as a whole; where it does not fit on the disk, none of it stays.
class EventFile {
 public:
  using Clock = std::chrono::system_clock;

  // Makes the folder if it is missing, and in it a new file whose name sorts behind those of all
  // event files there: TensorBoard reads them in that order as one run. flag: whose value the
  // folder is, for messages. Throws Error.
  EventFile(std::string_view flag, const std::string& folder, Clock::time_point now = Clock::now());
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  const std::string& path() const { return path_; }

  // These throw Error that names the flag and the file.
  //
  // A training starts, whose first step is this one: TensorBoard forgets events of this step and
  // later ones in earlier files, which a run that goes on from a checkpoint writes again.
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
  std::int64_t size_ = 0;  // of the whole events in the file
};

}  // namespace cnn::bench
