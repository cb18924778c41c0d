#include "allreduce/stall.h"

#include <algorithm>
#include <utility>

#include "allreduce/watched_process.h"

namespace cnn::allreduce {

WarningTransport::WarningTransport(Transport& transport, StallWarning warning)
    : ForwardingTransport(transport), warning_(std::move(warning)) {}

void WarningTransport::idle(int waits_for) {
  constexpr unsigned short_wait = 1000;       // which no clock is read for
  constexpr std::chrono::seconds longest{1};  // between two looks: else this rank was stopped
  ForwardingTransport::idle(waits_for);
  if (!warning_.say || ++idle_ < short_wait) {
    return;
  }
  const auto now = warning_.now();
  if (idle_ == short_wait) {
    looked_ = now;
    return;
  }
  idle_ = short_wait + 1;
  waited_ += std::min<std::chrono::steady_clock::duration>(now - looked_, longest);
  looked_ = now;
  if (waited_ >= (said_ + 1) * warning_.after) {
    ++said_;
    const std::string theirs = progress_text(progress_of(waits_for));
    const std::string name = "rank " + std::to_string(waits_for);
    warning_.say("rank " + std::to_string(rank()) + " has waited for " + name + " for " +
                 in_seconds(waited_) + ", in bucket " + std::to_string(bucket_) +
                 (theirs.empty() ? "" : "; " + name + " " + theirs));
  }
}

void WarningTransport::busy() {
  ForwardingTransport::busy();
  idle_ = 0;
  said_ = 0;
  waited_ = {};
}

}  // namespace cnn::allreduce
