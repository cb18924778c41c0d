#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cnn::bench {

// Rethrows the root cause of a failed run: the first exception that is not a lost peer, otherwise
// the first lost peer that its rank has observed to fail, otherwise the first lost peer.
// `errors[r]` is rank r's exception, or null. Returns if all are null.
void rethrow_cause(const std::vector<std::exception_ptr>& errors);

// A thread that runs one piece of work at a time, on request.
class RankThread {
 public:
  RankThread();
  ~RankThread();  // requires that started work has been waited for
  RankThread(const RankThread&) = delete;
  RankThread& operator=(const RankThread&) = delete;

  void start(std::function<void()> work);
  std::exception_ptr wait();  // blocks; returns the work's exception, or null

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  std::exception_ptr error_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;  // last member: it uses all others
};

}  // namespace cnn::bench
