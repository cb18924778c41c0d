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

// Between two looks at the clock at most a moment counts: this process may have been stopped.
bool CallDeadline::returned_within(Clock::duration time) {
  constexpr std::chrono::milliseconds between_looks{100};
  constexpr std::chrono::seconds moment{1};
  std::unique_lock lock(mutex_);
  Clock::time_point before = Clock::now();
  for (Clock::duration waited{}; waited < time && !returned_;) {
    changed_.wait_for(lock, std::min<Clock::duration>(between_looks, time - waited));
    const Clock::time_point now = Clock::now();
    waited += std::min<Clock::duration>(now - before, moment);
    before = now;
  }
  return returned_;
}

// Ranks of one host would all say the same: the first of those that wait does.
void CallDeadline::watch() {
  constexpr std::chrono::seconds for_first{5};
  ::pthread_setname_np(::pthread_self(), call_.c_str());
  if (returned_within(options_.longest)) {
    return;
  }
  HostRanks ranks = look_at_host_ranks(call_);
  if (ranks.lower_rank_waits) {
    if (returned_within(for_first)) {
      return;
    }
    ranks = look_at_host_ranks(call_);
  }
  options_.expired(call_ + " has waited for other ranks for " + in_seconds(options_.longest) +
                   " (" + options_.flag + "): " + ranks.text);
}

}  // namespace cnn::allreduce
