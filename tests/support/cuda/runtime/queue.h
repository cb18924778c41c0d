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

// The lock of all that the emulation keeps, and the signal that some of it has changed.
struct Lock {
  std::mutex mutex;
  std::condition_variable changed;
};

// The callbacks by which a queue tells of its work. All calls are made with the lock held.
struct QueueHooks {
  std::function<void()> begun, ended;
  std::function<void(const std::string& work, const std::string& why)> failed;
  std::function<bool()> is_broken;  // then bodies are skipped, as after a fault of a device
};

// Work in order, served by a thread of its own.
class Queue {
 public:
  Queue(Lock& lock, QueueHooks hooks, Delays delays);
  ~Queue();  // runs what is queued; without the lock
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // All of these need the lock.
  void push(Work work);
  bool is_empty() const { return works_.empty() && !running_; }
  bool uses(const std::function<bool(const void* at)>& is_inside) const;
  void set_held(bool held);  // nothing more begins while it is held

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

// A queue served by this thread, or null: the runtime must not be called from host work.
const Queue* current_queue();

}  // namespace cnn::tests::emulated
