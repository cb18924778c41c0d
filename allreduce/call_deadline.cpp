#include "allreduce/call_deadline.h"

#include <algorithm>
#include <pthread.h>

#include "allreduce/host_ranks.h"
#include "allreduce/watched_process.h"

namespace cnn::allreduce {

using Clock = std::chrono::steady_clock;

CallDeadline::CallDeadline(const std::string& call, const CallDeadlineOptions& options)
    : call_(call), options_(options) {
  if (options_.expired) {
    thread_ = std::thread([this] { watch(); });
  }
}

CallDeadline::~CallDeadline() {
  {
    const std::scoped_lock lock(mutex_);
    returned_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

// Counts at most one second between two readings of the clock: this process may have been stopped.
bool CallDeadline::returned_within(Clock::duration time) {
  constexpr std::chrono::milliseconds check_interval{100};
  constexpr std::chrono::seconds longest_gap{1};
  std::unique_lock lock(mutex_);
  Clock::time_point before = Clock::now();
  for (Clock::duration waited{}; waited < time && !returned_;) {
    changed_.wait_for(lock, std::min<Clock::duration>(check_interval, time - waited));
    const Clock::time_point now = Clock::now();
    waited += std::min<Clock::duration>(now - before, longest_gap);
    before = now;
  }
  return returned_;
}

// All ranks of a host would print the same message, so the lowest rank that waits does.
void CallDeadline::watch() {
  constexpr std::chrono::seconds for_lower_rank{5};
  ::pthread_setname_np(::pthread_self(), call_.c_str());
  if (returned_within(options_.timeout)) {
    return;
  }
  HostRanks ranks = inspect_host_ranks(call_);
  if (ranks.lower_rank_waits) {
    if (returned_within(for_lower_rank)) {
      return;
    }
    ranks = inspect_host_ranks(call_);
  }
  options_.expired(call_ + " has waited for other ranks for " + seconds_text(options_.timeout) +
                   " (" + options_.flag + "): " + ranks.text);
}

}  // namespace cnn::allreduce
