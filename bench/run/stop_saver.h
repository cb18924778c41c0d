#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "bench/session/variable_snapshot.h"

namespace cnn::bench {

// Saves the state after the last finished step as soon as the process is asked to end, while the
// next step still runs: a launcher may kill the process before that step ends. A step changes
// variables bucket by bucket, so the saver writes a snapshot taken between two steps.
class StopSaver {
 public:
  // asked_to_end: polled by a separate thread.
  explicit StopSaver(std::function<bool()> asked_to_end);
  ~StopSaver() { stop(); }
  StopSaver(const StopSaver&) = delete;
  StopSaver& operator=(const StopSaver&) = delete;

  // Replaces the snapshot by `take`. Blocks while the current one is being written.
  void update(const std::function<void(VariableSnapshot&)>& take);
  // Prevents writing a checkpoint while the caller holds the lock.
  std::unique_lock<std::mutex> pause() { return std::unique_lock(mutex_); }
  // Ends all writing; blocks while a checkpoint is being written.
  void stop();

  // After stop(): the saved global step, if any, and why the last save failed.
  std::optional<std::int64_t> saved_step() const { return saved_step_; }
  const std::string& problem() const { return problem_; }

 private:
  void watch();
  void save();

  std::function<bool()> asked_to_end_;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  bool fresh_ = false;  // the snapshot has not been written
  VariableSnapshot snapshot_;
  std::optional<std::int64_t> saved_step_;
  std::string problem_;
  std::thread thread_;  // last member: it uses the others
};

}  // namespace cnn::bench
