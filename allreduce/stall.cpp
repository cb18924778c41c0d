#include "allreduce/stall.h"

#include <algorithm>
#include <utility>

#include "allreduce/watched_process.h"

namespace cnn::allreduce {

StallWarningTransport::StallWarningTransport(Transport& transport, StallWarning warning)
    : ForwardingTransport(transport), warning_(std::move(warning)) {}

void StallWarningTransport::idle(int waits_for) {
  constexpr unsigned short_wait = 1000;       // rounds without a reading of the clock
  constexpr std::chrono::seconds longest{1};  // A longer gap means that this process was stopped.
  ForwardingTransport::idle(waits_for);
  if (!warning_.say || ++idle_ < short_wait) {
    return;
  }
  const auto now = warning_.now();
  if (idle_ == short_wait) {
    last_check_ = now;
    return;
  }
  idle_ = short_wait + 1;
  waited_ += std::min<std::chrono::steady_clock::duration>(now - last_check_, longest);
  last_check_ = now;
  if (waited_ >= (warnings_ + 1) * warning_.after) {
    ++warnings_;
    const std::string theirs = progress_text(progress_of(waits_for));
    const std::string name = "rank " + std::to_string(waits_for);
    warning_.say("rank " + std::to_string(rank()) + " has waited for " + name + " for " +
                 seconds_text(waited_) + ", in bucket " + std::to_string(bucket_) +
                 (theirs.empty() ? "" : "; " + name + " " + theirs));
  }
}

void StallWarningTransport::busy() {
  ForwardingTransport::busy();
  idle_ = 0;
  warnings_ = 0;
  waited_ = {};
}

}  // namespace cnn::allreduce
