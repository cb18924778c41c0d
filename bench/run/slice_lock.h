#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/seconds_since.h"

namespace cnn::bench {

// Time slices of programs on one machine: of all programs that name one file, one works while the
// others wait. A disturbance longer than a slice then affects all of them equally, which keeps
// their speeds comparable; separate runs drift apart.
//
// The file is a turnstile of two locks, bytes 0 ("works") and 1 ("is next"): a program takes lock
// 1, then lock 0, then releases lock 1; so a program that passes its turn queues behind a waiting
// one. The system releases the locks of an ended program: no program waits for a dead one, and a
// lone program never waits.
class SliceLock {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds default_slice{500};

  // Creates the file if it is missing. Throws Error. asked_to_end: polled while waiting; once it is
  // true, this program stops waiting and takes no more turns. Null: waits until its turn.
  explicit SliceLock(const std::string& path, Clock::duration turn = default_slice,
                     std::function<bool()> asked_to_end = nullptr);
  ~SliceLock();
  SliceLock(const SliceLock&) = delete;
  SliceLock& operator=(const SliceLock&) = delete;

  // Blocks until the first turn. Throws Error if the file system has no locks.
  void begin();
  // Lets a waiting program work, if any; returns when this program has its turn again.
  void pass();
  // Returns whether the turn has lasted its full length: pass it when a step ends.
  bool is_over() const { return file_ != nullptr && Clock::now() - start_ >= turn_; }

  std::int64_t passed() const { return passed_; }
  double seconds_waited() const { return in_seconds(waited_); }

 private:
  class File;
  struct Wait;

  void enter();
  void wait_on_thread();

  Clock::duration turn_;
  std::function<bool()> asked_to_end_;
  std::shared_ptr<File> file_;  // null: it was asked to end while it waited
  Clock::time_point start_;
  Clock::duration waited_{};
  std::int64_t passed_ = 0;
};

}  // namespace cnn::bench
