#pragma once

#include <chrono>
#include <string>

namespace cnn::allreduce {

// Watches a process of this host by a pidfd and /proc; process 0 means none.
class WatchedProcess {
 public:
  explicit WatchedProcess(int process);
  WatchedProcess(WatchedProcess&& other) noexcept;
  WatchedProcess& operator=(WatchedProcess&&) = delete;
  ~WatchedProcess();

  bool ended() const;
  // Returns how long the process has been stopped, as by SIGSTOP, as far as repeated calls can
  // tell. The time between two calls counts as half a second at most, because the caller may have
  // been stopped as well.
  std::chrono::steady_clock::duration stopped();
  int process() const { return process_; }

 private:
  int process_;
  std::string stat_file_;
  int descriptor_;
  bool was_stopped_ = false;
  std::chrono::steady_clock::time_point last_check_{};
  std::chrono::steady_clock::duration stopped_{};
};

// Returns a text such as "2.5 s".
std::string seconds_text(std::chrono::steady_clock::duration time);

}  // namespace cnn::allreduce
