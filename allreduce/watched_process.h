#pragma once

#include <chrono>
#include <string>

namespace cnn::allreduce {

// A process of this machine whose end can be seen; 0: nobody.
class WatchedProcess {
 public:
  explicit WatchedProcess(int process);
  WatchedProcess(WatchedProcess&& other) noexcept;
  WatchedProcess& operator=(WatchedProcess&&) = delete;
  ~WatchedProcess();

  bool ended() const;
  // How long it has been stopped, as by SIGSTOP, in the eyes of who asks again and again: time
  // between two questions counts as a moment at most, for who asks may have been stopped as well.
  std::chrono::steady_clock::duration stopped();
  int process() const { return process_; }

 private:
  int process_;
  std::string state_;  // the file that tells it
  int descriptor_;
  bool was_stopped_ = false;
  std::chrono::steady_clock::time_point looked_{};
  std::chrono::steady_clock::duration stopped_{};
};

// "2.5 s"
std::string in_seconds(std::chrono::steady_clock::duration time);

}  // namespace cnn::allreduce
