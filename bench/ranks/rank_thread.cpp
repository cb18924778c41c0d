#include "bench/ranks/rank_thread.h"

#include <utility>

#include "allreduce/transport.h"

namespace cnn::bench {

void rethrow_cause(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr first;
  bool observed = false;
  for (const std::exception_ptr& error : errors) {
    if (error == nullptr) {
      continue;
    }
    try {
      std::rethrow_exception(error);
    } catch (const allreduce::PeerLost& lost) {
      const bool observes = lost.source() == allreduce::PeerLost::Source::observed;
      if (first == nullptr || (observes && !observed)) {
        first = error;
        observed = observes;
      }
    }
  }
  if (first != nullptr) {
    std::rethrow_exception(first);
  }
}

RankThread::RankThread() : thread_([this] { loop(); }) {}

RankThread::~RankThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RankThread::start(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
    error_ = nullptr;
    busy_ = true;
  }
  changed_.notify_all();
}

std::exception_ptr RankThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  return error_;
}

void RankThread::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return busy_ || ends_; });
    if (!busy_) {
      return;
    }
    lock.unlock();
    std::exception_ptr error;
    try {
      work_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace cnn::bench
