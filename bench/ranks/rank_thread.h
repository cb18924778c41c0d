#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cnn::bench {

// Of what ranks threw, by rank, null where nothing: rethrows the first error of a rank that failed
// by itself, else the first of all, which tell of a lost peer. Returns if all are null.
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
