#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace cnn::allreduce {

struct CallDeadlineOptions {
  std::chrono::milliseconds timeout{30'000};
  std::string flag;  // the flag that sets the timeout, for the message
  // Is called with the message on the watchdog thread and ends the process, because a call that
  // does not return cannot be left otherwise. Null: there is no deadline.
  std::function<void(const std::string& message)> expired;
};

// A watchdog for one blocking call of a library that may wait for other ranks without end, such as
// MPI_Init. It lives as long as the call. Its thread has the name of the call, so that other ranks
// of the host see in /proc that this one is in it. Time in which this process was stopped does not
// count.
class CallDeadline {
 public:
  // call: at most 15 bytes, which is what Linux keeps of a thread's name.
  CallDeadline(const std::string& call, const CallDeadlineOptions& options);
  ~CallDeadline();
  CallDeadline(const CallDeadline&) = delete;
  CallDeadline& operator=(const CallDeadline&) = delete;

 private:
  void watch();
  bool returned_within(std::chrono::steady_clock::duration time);

  std::string call_;
  CallDeadlineOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool returned_ = false;
  std::thread thread_;  // declared last, as it uses the others
};

}  // namespace cnn::allreduce
