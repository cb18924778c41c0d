#include "bench/machine/telemetry_sampler.h"

#include "runtime/seconds_since.h"

namespace cnn::bench {

TelemetrySampler::TelemetrySampler(TelemetrySource& source, std::chrono::milliseconds every)
    : source_(source),
      disturbing_(source.facts().disturbing),
      every_(every),
      start_(Clock::now()),
      thread_([this] { sample(); }) {}

TelemetrySampler::~TelemetrySampler() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

double TelemetrySampler::seconds() const { return seconds_since(start_); }

Reading TelemetrySampler::read() {
  const Reading reading = source_.read();
  throttled_samples_ += (reading.throttled.value_or(0) & disturbing_) != 0 ? 1 : 0;
  return reading;
}

std::optional<std::uint64_t> TelemetrySampler::throttled_samples() const {
  return disturbing_ == 0 ? std::nullopt : std::optional<std::uint64_t>(throttled_samples_);
}

void TelemetrySampler::resume() {
  {
    const std::lock_guard lock(mutex_);
    if (running_ || stopped_) {
      return;
    }
    running_ = true;
    const Reading reading = read();
    totals_.begin(reading, seconds());
  }
  changed_.notify_all();
}

void TelemetrySampler::pause() {
  {
    const std::lock_guard lock(mutex_);
    if (!running_) {
      return;
    }
    running_ = false;
    const double end = seconds();  // excludes the milliseconds of the reading
    totals_.add(read(), end);
  }
  changed_.notify_all();
}

Telemetry TelemetrySampler::finish(std::int64_t images) {
  pause();
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  return totals_.summary(source_.facts(), static_cast<double>(images));
}

void TelemetrySampler::sample() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (!running_) {
      changed_.wait(lock, [this] { return stopped_ || running_; });
    } else if (!changed_.wait_for(lock, every_, [this] { return stopped_ || !running_; })) {
      const Reading reading = read();
      totals_.add(reading, seconds());
    }
  }
}

}  // namespace cnn::bench
