#include "allreduce/mpi/heartbeats.h"

#include <algorithm>
#include <span>
#include <utility>

namespace cnn::allreduce {
namespace {

constexpr int heartbeat_tag = 3;
constexpr std::chrono::seconds longest_beat{1};  // if the process was not stopped

}  // namespace

Heartbeats::Heartbeats(MPI_Comm comm, std::span<const int> others, std::recursive_mutex& turn,
                       std::chrono::milliseconds between)
    : comm_(comm), between_(between), turn_(turn) {
  for (const int rank : others) {
    others_.push_back({.rank = rank});
  }
  if (!others_.empty()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
}

Heartbeats::~Heartbeats() { stop(); }

void Heartbeats::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

void Heartbeats::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    beat();
    std::unique_lock lock(sleep_);
    wake_.wait_for(lock, stop, between_, [] { return false; });
  }
}

// A sign that has not left yet is not followed by another. What MPI thinks of a lost peer does not
// matter here: nothing is heard of it.
void Heartbeats::beat() {
  const std::lock_guard lock(turn_);
  const Clock::time_point now = Clock::now();
  lived_ += std::min<Clock::duration>(now - std::exchange(beat_, now), longest_beat);
  for (Other& other : std::span(others_).first(ended_ ? 0 : others_.size())) {
    int left = 0;
    if (MPI_Test(&other.sending, &left, MPI_STATUS_IGNORE) == MPI_SUCCESS && left != 0) {
      other.out = progress_ == nullptr ? 0 : progress_->load(std::memory_order_relaxed);
      MPI_Isend(&other.out, 1, MPI_UINT64_T, other.rank, heartbeat_tag, comm_, &other.sending);
    }
    int here = 1;
    while (MPI_Iprobe(other.rank, heartbeat_tag, comm_, &here, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           here != 0) {
      MPI_Recv(&other.in, 1, MPI_UINT64_T, other.rank, heartbeat_tag, comm_, MPI_STATUS_IGNORE);
      other.heard = lived_;
    }
  }
}

void Heartbeats::tell(const Progress* progress) {
  const std::lock_guard lock(turn_);
  progress_ = progress;
}

std::uint64_t Heartbeats::progress_of(int rank) const {
  const std::lock_guard lock(turn_);
  const auto other = std::ranges::find(others_, rank, &Other::rank);
  return other == others_.end() ? 0 : other->in;
}

Heartbeats::Silence Heartbeats::longest() const {
  const std::lock_guard lock(turn_);
  const auto quietest = std::ranges::min_element(others_, {}, &Other::heard);
  return quietest == others_.end() ? Silence{} : Silence{quietest->rank, lived_ - quietest->heard};
}

}  // namespace cnn::allreduce
