#include "bench/run/stop_saver.h"

#include <chrono>
#include <exception>
#include <utility>

namespace cnn::bench {

StopSaver::StopSaver(std::function<bool()> asked_to_end)
    : asked_to_end_(std::move(asked_to_end)), thread_([this] { watch(); }) {}

void StopSaver::update(const std::function<void(VariableSnapshot&)>& take) {
  const std::scoped_lock lock(mutex_);
  fresh_ = false;
  take(snapshot_);
  fresh_ = true;
}

void StopSaver::watch() {
  // Polls the stop request, because a signal handler cannot notify a condition variable.
  constexpr std::chrono::milliseconds between_looks{20};
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (fresh_ && asked_to_end_()) {
      save();
    }
    ended_changed_.wait_for(lock, between_looks, [this] { return ended_; });
  }
}

void StopSaver::save() {
  fresh_ = false;
  try {
    snapshot_.save();
    saved_step_ = snapshot_.options.global_step;
    problem_.clear();
  } catch (const std::exception& error) {
    problem_ = error.what();
  }
}

void StopSaver::stop() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace cnn::bench
