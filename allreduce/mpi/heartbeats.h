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

// Sends and receives the heartbeats of a failure detector over MPI, on a thread of its own, so that
// they flow whatever the process computes.
class Heartbeats {
 public:
  using Clock = std::chrono::steady_clock;

  // mpi_mutex: the lock of all calls of MPI, which the thread takes for one message at a time.
  // on_poll: the thread calls it every 25 ms without that lock. `comm` and `mpi_mutex` must outlive
  // this object.
  Heartbeats(MPI_Comm comm, FailureDetector detector, std::recursive_mutex& mpi_mutex,
             std::chrono::milliseconds interval, std::function<void()> on_poll);
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  // These three return what the functions of FailureDetector of these names do.
  FailureDetector::Overdue most_overdue() const;
  int root_of(int rank) const;
  std::uint64_t progress_of(int rank) const;
  // Sets the rank that this one waits for from now on; -1: none.
  void wait_for(int rank) { waits_for_.store(rank, std::memory_order_relaxed); }
  // Sets the word that heartbeats publish; null: none.
  void publish(const Progress* progress);
  // Stops all sending and receiving at once. The caller holds the lock.
  void end() { ended_ = true; }
  // Blocks until the thread has ended.
  void stop();

 private:
  struct Outgoing {
    MPI_Request request = MPI_REQUEST_NULL;
    FailureDetector::Heartbeat heartbeat;  // lives until MPI has sent it
  };

  void run(const std::stop_token& stop);
  void send_heartbeats();
  bool receive();
  // Returns false if it skips the heartbeat because the previous one is still being sent.
  bool send(int to, const FailureDetector::Heartbeat& heartbeat);

  MPI_Comm comm_;
  std::chrono::milliseconds interval_;
  std::function<void()> on_poll_;
  std::recursive_mutex& mpi_mutex_;
  bool ended_ = false;                // guarded by mpi_mutex_, like the next
  std::map<int, Outgoing> outgoing_;  // by receiver
  std::atomic<int> waits_for_{-1};
  mutable std::mutex state_;  // guards the following; never held when mpi_mutex_ is taken
  FailureDetector detector_;
  Clock::time_point last_beat_ = Clock::now();
  Clock::duration uptime_{};  // without the time in which this process was stopped
  const Progress* progress_ = nullptr;
  std::mutex sleep_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // declared last, as it uses all the others
};

}  // namespace cnn::allreduce
