#include "allreduce/mpi/heartbeats.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

namespace cnn::allreduce {
namespace {

using Sign = FailureDetector::Sign;
static_assert(std::is_trivially_copyable_v<Sign>);

constexpr int heartbeat_tag = 3;
constexpr std::chrono::seconds longest_beat{1};  // if the process was not stopped

}  // namespace

Heartbeats::Heartbeats(MPI_Comm comm, FailureDetector detector, std::recursive_mutex& turn,
                       std::chrono::milliseconds between, std::function<void()> on_poll)
    : comm_(comm),
      between_(between),
      on_poll_(std::move(on_poll)),
      turn_(turn),
      detector_(std::move(detector)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Heartbeats::~Heartbeats() { stop(); }

void Heartbeats::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

void Heartbeats::run(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds between_polls{25};
  beat();
  while (!stop.stop_requested()) {
    on_poll_();
    if (Clock::now() - beat_ >= between_) {
      beat();
    }
    std::unique_lock lock(sleep_);
    wake_.wait_for(lock, stop, std::min(between_, between_polls), [] { return false; });
  }
}

void Heartbeats::beat() {
  while (receive()) {
  }
  std::vector<std::pair<int, Sign>> signs;
  {
    const std::lock_guard lock(state_);
    const Clock::time_point now = Clock::now();
    lived_ += std::min<Clock::duration>(now - std::exchange(beat_, now), longest_beat);
    const auto progress = progress_ == nullptr ? 0 : progress_->load(std::memory_order_relaxed);
    signs = detector_.beat(lived_, progress, waits_for_.load(std::memory_order_relaxed));
  }
  for (const auto& [rank, sign] : signs) {
    send(rank, sign);
  }
}

// Errors of MPI about a lost peer do not matter here: nothing is heard of it.
bool Heartbeats::receive() {
  Sign sign;
  MPI_Status status;
  {
    const std::lock_guard lock(turn_);
    int here = 0;
    if (ended_ || MPI_Iprobe(MPI_ANY_SOURCE, heartbeat_tag, comm_, &here, &status) != MPI_SUCCESS ||
        here == 0 ||
        MPI_Recv(&sign, sizeof(sign), MPI_BYTE, status.MPI_SOURCE, heartbeat_tag, comm_,
                 MPI_STATUS_IGNORE) != MPI_SUCCESS) {
      return false;
    }
  }
  const std::lock_guard lock(state_);
  detector_.heard(status.MPI_SOURCE, sign, lived_);
  return true;
}

// A sign that has not left yet is not followed by another.
void Heartbeats::send(int to, const Sign& sign) {
  const std::lock_guard lock(turn_);
  if (ended_) {
    return;
  }
  Outgoing& outgoing = outgoing_[to];
  int left = 0;
  if (MPI_Test(&outgoing.request, &left, MPI_STATUS_IGNORE) == MPI_SUCCESS && left != 0) {
    outgoing.sign = sign;
    MPI_Isend(&outgoing.sign, sizeof(sign), MPI_BYTE, to, heartbeat_tag, comm_, &outgoing.request);
  }
}

void Heartbeats::tell(const Progress* progress) {
  const std::lock_guard lock(state_);
  progress_ = progress;
}

FailureDetector::Silence Heartbeats::longest() const {
  const std::lock_guard lock(state_);
  return detector_.longest(lived_);
}

int Heartbeats::root_of(int rank) const {
  const std::lock_guard lock(state_);
  return detector_.root_of(rank);
}

std::uint64_t Heartbeats::progress_of(int rank) const {
  const std::lock_guard lock(state_);
  return detector_.progress_of(rank);
}

}  // namespace cnn::allreduce
