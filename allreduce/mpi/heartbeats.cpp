#include "allreduce/mpi/heartbeats.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

namespace cnn::allreduce {
namespace {

using Heartbeat = FailureDetector::Heartbeat;
static_assert(std::is_trivially_copyable_v<Heartbeat>);

constexpr int heartbeat_tag = 3;
constexpr std::chrono::seconds longest_gap{1};  // A longer one means that this process was stopped.

}  // namespace

Heartbeats::Heartbeats(MPI_Comm comm, FailureDetector detector, std::recursive_mutex& mpi_mutex,
                       std::chrono::milliseconds interval, std::function<void()> on_poll)
    : comm_(comm),
      interval_(interval),
      on_poll_(std::move(on_poll)),
      mpi_mutex_(mpi_mutex),
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
  constexpr std::chrono::milliseconds poll_interval{25};
  send_heartbeats();
  while (!stop.stop_requested()) {
    on_poll_();
    if (Clock::now() - last_beat_ >= interval_) {
      send_heartbeats();
    }
    std::unique_lock lock(sleep_);
    wake_.wait_for(lock, stop, std::min(interval_, poll_interval), [] { return false; });
  }
}

void Heartbeats::send_heartbeats() {
  while (receive()) {
  }
  std::vector<std::pair<int, Heartbeat>> heartbeats;
  {
    const std::lock_guard lock(state_);
    const Clock::time_point now = Clock::now();
    uptime_ += std::min<Clock::duration>(now - std::exchange(last_beat_, now), longest_gap);
    const auto progress = progress_ == nullptr ? 0 : progress_->load(std::memory_order_relaxed);
    heartbeats =
        detector_.begin_period(uptime_, progress, waits_for_.load(std::memory_order_relaxed));
  }
  for (const auto& [rank, heartbeat] : heartbeats) {
    if (!send(rank, heartbeat)) {
      const std::lock_guard lock(state_);
      detector_.on_skip(rank, uptime_);
    }
  }
}

// Ignores errors of MPI about a lost peer: its missing heartbeats report it too.
bool Heartbeats::receive() {
  Heartbeat heartbeat;
  MPI_Status status;
  {
    const std::lock_guard lock(mpi_mutex_);
    int here = 0;
    if (ended_ || MPI_Iprobe(MPI_ANY_SOURCE, heartbeat_tag, comm_, &here, &status) != MPI_SUCCESS ||
        here == 0 ||
        MPI_Recv(&heartbeat, sizeof(heartbeat), MPI_BYTE, status.MPI_SOURCE, heartbeat_tag, comm_,
                 MPI_STATUS_IGNORE) != MPI_SUCCESS) {
      return false;
    }
  }
  const std::lock_guard lock(state_);
  detector_.on_receive(status.MPI_SOURCE, heartbeat, uptime_);
  return true;
}

bool Heartbeats::send(int to, const Heartbeat& heartbeat) {
  const std::lock_guard lock(mpi_mutex_);
  if (ended_) {
    return true;
  }
  Outgoing& outgoing = outgoing_[to];
  int left = 0;
  if (MPI_Test(&outgoing.request, &left, MPI_STATUS_IGNORE) == MPI_SUCCESS && left != 0) {
    outgoing.heartbeat = heartbeat;
    MPI_Isend(&outgoing.heartbeat, sizeof(heartbeat), MPI_BYTE, to, heartbeat_tag, comm_,
              &outgoing.request);
    return true;
  }
  return false;
}

void Heartbeats::publish(const Progress* progress) {
  const std::lock_guard lock(state_);
  progress_ = progress;
}

FailureDetector::Overdue Heartbeats::most_overdue() const {
  const std::lock_guard lock(state_);
  return detector_.most_overdue(uptime_);
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
