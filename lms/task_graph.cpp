#include "lms/task_graph.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/error.h"

namespace cnn::lms {
namespace {

class TaskGraph {
 public:
  explicit TaskGraph(const std::vector<Task>& tasks)
      : tasks_(tasks), waits_for_(tasks.size()), needed_by_(tasks.size()), errors_(tasks.size()) {
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      waits_for_[t] = tasks[t].needs.size();
      for (const std::size_t earlier : tasks[t].needs) {
        check(earlier < t, "a task may need only tasks that come before it");
        needed_by_[earlier].push_back(t);
      }
    }
    begun_.resize(tasks.size(), false);
  }

  // Runs tasks until none is left to begin.
  void work() {
    std::unique_lock lock(mutex_);
    while (const std::optional<std::size_t> task = next(lock)) {
      begun_[*task] = true;
      lock.unlock();
      run(*task);
      lock.lock();
      end(*task);
    }
  }

  void rethrow() const {
    const auto error = std::ranges::find_if(errors_, [](const auto& e) { return e != nullptr; });
    if (error != errors_.end()) {
      std::rethrow_exception(*error);
    }
  }

 private:
  // Waits for the first task that may begin. Nothing if no task will.
  std::optional<std::size_t> next(std::unique_lock<std::mutex>& lock) {
    for (;;) {
      bool is_any_left = false;
      for (std::size_t t = 0; t < tasks_.size() && !failed_; ++t) {
        if (!begun_[t] && waits_for_[t] == 0) {
          return t;
        }
        is_any_left = is_any_left || !begun_[t];
      }
      if (!is_any_left) {
        return std::nullopt;
      }
      changed_.wait(lock);
    }
  }

  void run(std::size_t task) {
    try {
      tasks_[task].run();
    } catch (...) {
      errors_[task] = std::current_exception();
    }
  }

  void end(std::size_t task) {
    failed_ = failed_ || errors_[task] != nullptr;
    for (const std::size_t later : needed_by_[task]) {
      --waits_for_[later];
    }
    changed_.notify_all();
  }

  const std::vector<Task>& tasks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> begun_;
  std::vector<std::size_t> waits_for_;               // by task: needed tasks that have not ended
  std::vector<std::vector<std::size_t>> needed_by_;  // by task: later tasks
  std::vector<std::exception_ptr> errors_;           // by task
  bool failed_ = false;
};

}  // namespace

void run_tasks(const std::vector<Task>& tasks, std::size_t threads) {
  TaskGraph graph(tasks);
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 1; t < std::min(threads, tasks.size()); ++t) {
      workers.emplace_back([&] { graph.work(); });
    }
    graph.work();
  }
  graph.rethrow();
}

}  // namespace cnn::lms
