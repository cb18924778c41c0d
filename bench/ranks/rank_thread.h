#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cnn::bench {

// Rethrows the root cause of a failed run: the first exception of a rank that failed by itself,
// otherwise the first that tells of a lost peer. `errors[r]` is rank r's exception, or null.
// Returns if all are null.
void rethrow_cause(const std::vector<std::exception_ptr>& errors);

// A thread that does one piece of work after another, each when it is asked to.
class RankThread {
 public:
  RankThread();
  ~RankThread();  // what was started has been waited for
  RankThread(const RankThread&) = delete;
  RankThread& operator=(const RankThread&) = delete;

  void start(std::function<void()> work);
  std::exception_ptr wait();  // what the work threw, or null

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  std::exception_ptr error_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;  // last: it uses all others
};

}  // namespace cnn::bench
