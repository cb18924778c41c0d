#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace cnn::allreduce {

struct CallDeadlineOptions {
  std::chrono::milliseconds longest{30'000};
  std::string flag;  // that sets it, for the message
  // Gets the message, on a thread of the deadline, and ends the process: the call that does not
  // return cannot be left otherwise. Null: there is no deadline.
  std::function<void(const std::string& message)> expired;
};

// Guards one call of a library that waits for other ranks without end, such as MPI_Init: lives as
// long as the call. Its thread carries the name of the call, so that the ranks of a host see in
// /proc who has arrived there. Time in which this process was stopped does not count.
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
  std::thread thread_;  // last: it uses the others
};

}  // namespace cnn::allreduce
