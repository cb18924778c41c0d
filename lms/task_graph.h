#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace cnn::lms {

struct Task {
  std::function<void()> run;
  std::vector<std::size_t> needs;  // numbers of earlier tasks, which must have ended before
};

// Runs all tasks on so many threads, of which the caller's is one. A free thread takes the first
// task that waits for no other, so tasks on the longest path belong at the front. The order is not
// the same in every run. After an exception no further task begins; the exception of
// the first task that threw one is rethrown.
void run_tasks(const std::vector<Task>& tasks, std::size_t threads);

}  // namespace cnn::lms
