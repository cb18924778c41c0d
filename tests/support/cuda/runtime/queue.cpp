#include "tests/support/cuda/runtime/queue.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace cnn::tests::emulated {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a property of the thread
constinit thread_local const Queue* served = nullptr;

}  // namespace

const Queue* current_queue() { return served; }

Queue::Queue(Lock& lock, QueueHooks hooks, Delays delays)
    : lock_(lock), hooks_(std::move(hooks)), delays_(delays), random_(delays.seed), server_([this] {
        serve();
      }) {
  server_id_ = server_.get_id();
}

Queue::~Queue() {
  {
    const std::scoped_lock lock(lock_.mutex);
    closing_ = true;
    held_ = false;
    lock_.changed.notify_all();
  }
  server_.join();
}

void Queue::push(Work work) {
  hooks_.begun();
  works_.push_back(std::move(work));
  lock_.changed.notify_all();
}

bool Queue::uses(const std::function<bool(const void* at)>& is_inside) const {
  return std::ranges::any_of(used_now_, is_inside) ||
         std::ranges::any_of(
             works_, [&](const Work& work) { return std::ranges::any_of(work.uses, is_inside); });
}

void Queue::set_held(bool held) {
  held_ = held;
  lock_.changed.notify_all();
}

bool Queue::may_begin() const {
  return !held_ && !works_.empty() &&
         std::ranges::all_of(works_.front().waits,
                             [](const EventState& state) { return state->reached; });
}

void Queue::delay() {
  if (static_cast<int>(random_() % 100) < delays_.percent) {
    const auto range = static_cast<std::uint32_t>(delays_.longest.count()) + 1;
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % range));
  }
}

void Queue::serve() {
  served = this;
  std::unique_lock lock(lock_.mutex);
  for (;;) {
    lock_.changed.wait(lock, [this] { return may_begin() || (closing_ && works_.empty()); });
    if (works_.empty()) {
      return;
    }
    Work work = std::move(works_.front());
    works_.pop_front();
    used_now_ = work.uses;
    running_ = true;
    std::string why;
    if (work.body && !hooks_.is_broken()) {
      lock.unlock();
      delay();
      try {
        work.body();
      } catch (const std::exception& error) {
        why = error.what();
      }
      lock.lock();
    }
    if (!why.empty()) {
      hooks_.failed(work.name, why);
    }
    running_ = false;
    used_now_.clear();
    if (work.done) {
      work.done->reached = true;
      work.done->at = std::chrono::steady_clock::now();
    }
    hooks_.ended();
    lock_.changed.notify_all();
  }
}

}  // namespace cnn::tests::emulated
