#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mpi.h>
#include <mutex>
#include <thread>

#include "allreduce/failure_detector.h"
#include "allreduce/progress.h"

namespace cnn::allreduce {

// Carries the signs of life of a failure detector by MPI: a thread sends them and takes note of
// those that come, whatever its process computes.
class Heartbeats {
 public:
  using Clock = std::chrono::steady_clock;

  // turn: of who calls MPI, which the thread takes for one message at a time. on_poll: called by
  // the thread every 25 ms, without the turn. Communicator and mutex must outlive it.
  Heartbeats(MPI_Comm comm, FailureDetector detector, std::recursive_mutex& turn,
             std::chrono::milliseconds between, std::function<void()> on_poll);
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  // As FailureDetector's.
  FailureDetector::Silence longest() const;
  int root_of(int rank) const;
  std::uint64_t progress_of(int rank) const;
  // The rank that this one waits for from now on; -1: it does not wait.
  void wait_for(int rank) { waits_for_.store(rank, std::memory_order_relaxed); }
  // Sets what the signs tell of this rank: the data there. Null: nothing.
  void tell(const Progress* progress);
  // Nothing more is sent or heard: at once, for who has the turn, or when the thread has ended.
  void end() { ended_ = true; }
  void stop();

 private:
  struct Outgoing {
    MPI_Request request = MPI_REQUEST_NULL;
    FailureDetector::Sign sign;  // as long as MPI may read it
  };

  void run(const std::stop_token& stop);
  void beat();
  bool receive();
  void send(int to, const FailureDetector::Sign& sign);

  MPI_Comm comm_;
  std::chrono::milliseconds between_;
  std::function<void()> on_poll_;
  std::recursive_mutex& turn_;
  bool ended_ = false;                // guarded by the turn, as the next
  std::map<int, Outgoing> outgoing_;  // by receiver
  std::atomic<int> waits_for_{-1};
  mutable std::mutex state_;  // guards what follows; never held when the turn is taken
  FailureDetector detector_;
  Clock::time_point beat_ = Clock::now();  // the last
  Clock::duration lived_{};                // without time in which this process was stopped
  const Progress* progress_ = nullptr;
  std::mutex sleep_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses all others
};

}  // namespace cnn::allreduce
