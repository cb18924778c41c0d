#include "bench/report/event_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <tuple>
#include <unistd.h>
#include <vector>

#include "bench/report/write_all.h"
#include "data/records/record.h"
#include "runtime/error.h"
#include "runtime/resource_limits.h"
#include "runtime/seconds_since.h"

namespace cnn::bench {
namespace {

constexpr std::string_view name_prefix = "events.out.tfevents.";
constexpr std::string_view format_version = "brain.Event:2";
constexpr mode_t event_file_mode = 0666;  // before the umask

// Field numbers of TensorFlow's messages.
namespace event_field {
constexpr std::uint64_t wall_time = 1, step = 2, file_version = 3, graph_def = 4, summary = 5,
                        session_log = 7;
}
namespace value_field {
constexpr std::uint64_t tag = 1, simple_value = 2, image = 4, histogram = 5;
}
namespace image_field {
constexpr std::uint64_t height = 1, width = 2, colour_space = 3, encoded = 4;
}
namespace histogram_field {
constexpr std::uint64_t min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, bucket_limit = 6,
                        bucket = 7;
}
constexpr std::uint64_t summary_value_field = 1;
constexpr std::uint64_t session_status_field = 1;
constexpr std::int64_t session_start = 1;

data::ProtobufWriter new_event(std::int64_t step) {
  data::ProtobufWriter event;
  event.double_field(event_field::wall_time,
                     in_seconds(EventFile::Clock::now().time_since_epoch()));
  event.varint_field(event_field::step, step);
  return event;
}

// Returns the seconds in the name of an event file; 0 for another file.
std::int64_t second_of(std::string_view name) {
  std::int64_t second = 0;
  if (name.starts_with(name_prefix)) {
    name.remove_prefix(name_prefix.size());
    std::from_chars(name.data(), name.data() + name.size(), second);
  }
  return second;
}

std::int64_t newest_second_in(const std::string& folder) {
  std::int64_t newest = 0;
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    newest = std::max(newest, second_of(entry->path().filename().string()));
  }
  return newest;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

void Summary::scalar(std::string_view tag, double value) {
  data::ProtobufWriter message;
  message.bytes_field(value_field::tag, tag);
  message.float_field(value_field::simple_value, static_cast<float>(value));
  values_.bytes_field(summary_value_field, message.message());
}

void Summary::histogram(std::string_view tag, const Histogram& histogram) {
  const Histogram::Buckets buckets = histogram.buckets();
  data::ProtobufWriter counts;
  counts.double_field(histogram_field::min, histogram.min());
  counts.double_field(histogram_field::max, histogram.max());
  counts.double_field(histogram_field::num, static_cast<double>(histogram.count()));
  counts.double_field(histogram_field::sum, histogram.sum());
  counts.double_field(histogram_field::sum_squares, histogram.sum_of_squares());
  counts.packed_doubles_field(histogram_field::bucket_limit, buckets.limits);
  counts.packed_doubles_field(histogram_field::bucket, buckets.counts);
  data::ProtobufWriter message;
  message.bytes_field(value_field::tag, tag);
  message.bytes_field(value_field::histogram, counts.message());
  values_.bytes_field(summary_value_field, message.message());
}

void Summary::image(std::string_view tag, std::int64_t height, std::int64_t width,
                    std::span<const std::byte> png) {
  constexpr std::int64_t rgb = 3;
  data::ProtobufWriter image;
  image.varint_field(image_field::height, height);
  image.varint_field(image_field::width, width);
  image.varint_field(image_field::colour_space, rgb);
  image.bytes_field(image_field::encoded, png);
  data::ProtobufWriter message;
  message.bytes_field(value_field::tag, tag);
  message.bytes_field(value_field::image, image.message());
  values_.bytes_field(summary_value_field, message.message());
}

EventFile::EventFile(std::string_view flag, const std::string& folder, Clock::time_point now)
    : flag_(flag), path_(folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem && !std::filesystem::is_directory(folder)) {
    fail(problem.value());
  }
  open_new(folder, now);
  data::ProtobufWriter version;
  version.double_field(event_field::wall_time, in_seconds(now.time_since_epoch()));
  version.bytes_field(event_field::file_version, format_version);
  try {
    append(version);
  } catch (...) {
    close(descriptor_);
    unlink(path_.c_str());
    throw;
  }
}

EventFile::~EventFile() { close(descriptor_); }

void EventFile::open_new(const std::string& folder, Clock::time_point now) {
  const std::int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  std::int64_t second = std::max(seconds, newest_second_in(folder) + 1);
  do {
    path_ = fmt::format("{}/{}{:010}.{}.{}", folder, name_prefix, second++, host_name(), getpid());
    descriptor_ =
        open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, event_file_mode);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) {
    fail(errno);
  }
}

void EventFile::append(const data::ProtobufWriter& event) {
  std::vector<std::byte> record;
  data::append_record(record, event.message());
  const std::string_view bytes(reinterpret_cast<const char*>(record.data()), record.size());
  if (const int problem = write_all(descriptor_, bytes); problem != 0) {
    std::ignore = ftruncate(descriptor_, size_);
    fail(problem);
  }
  size_ += static_cast<std::int64_t>(record.size());
}

void EventFile::fail(int problem) const {
  throw Error(fmt::format("{}: cannot write TensorBoard events to {}: {}", flag_, path_,
                          write_problem_text(problem)));
}

void EventFile::session_starts(std::int64_t first_step) {
  data::ProtobufWriter log;
  log.varint_field(session_status_field, session_start);
  data::ProtobufWriter event = new_event(first_step);
  event.bytes_field(event_field::session_log, log.message());
  append(event);
}

void EventFile::graph(std::span<const std::byte> graph_def) {
  data::ProtobufWriter event = new_event(0);
  event.bytes_field(event_field::graph_def, graph_def);
  append(event);
}

void EventFile::summary(std::int64_t step, const Summary& summary) {
  data::ProtobufWriter event = new_event(step);
  event.bytes_field(event_field::summary, summary.message());
  append(event);
}

}  // namespace cnn::bench
