#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "tests/support/cuda/runtime/work.h"

namespace cnn::tests::emulated {

// The lock of the whole emulation, and the signal that some state has changed.
struct Lock {
  std::mutex mutex;
  std::condition_variable changed;
};

// Callbacks by which a queue reports on its work. The queue calls them with the lock held.
struct QueueHooks {
  std::function<void()> begun, ended;
  std::function<void(const std::string& work, const std::string& why)> failed;
  std::function<bool()> is_broken;  // if true, bodies are skipped, as after a fault of a device
};

// A queue of work that one thread runs in order.
class Queue {
 public:
  Queue(Lock& lock, QueueHooks hooks, Delays delays);
  ~Queue();  // runs the queued work; call it without the lock
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // All these functions need the lock.
  void push(Work work);
  bool is_empty() const { return works_.empty() && !running_; }
  bool uses(const std::function<bool(const void* at)>& is_inside) const;
  void set_held(bool held);  // no further work begins while the queue is held

  const std::thread::id& server() const { return server_id_; }

 private:
  void serve();
  bool may_begin() const;
  void delay();

  Lock& lock_;
  QueueHooks hooks_;
  Delays delays_;
  std::minstd_rand random_;
  std::deque<Work> works_;
  std::vector<const void*> used_now_;
  bool running_ = false;
  bool held_ = false;
  bool closing_ = false;
  std::thread::id server_id_;
  std::thread server_;
};

// Returns the queue that this thread runs, or null. Host work uses it, because it must not call the
// runtime.
const Queue* current_queue();

}  // namespace cnn::tests::emulated
