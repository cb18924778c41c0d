#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mpi.h>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "allreduce/progress.h"

namespace cnn::allreduce {

// Signs of life between ranks that cannot see one another's processes end: a thread sends them and
// takes note of those that come, whatever its process computes.
class Heartbeats {
 public:
  using Clock = std::chrono::steady_clock;

  // others: with whom. turn: of who calls MPI. Communicator and mutex must outlive it.
  Heartbeats(MPI_Comm comm, std::span<const int> others, std::recursive_mutex& turn,
             std::chrono::milliseconds between);
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  struct Silence {
    int rank = -1;  // of those that it knows; -1: it knows none
    Clock::duration lasts{};
  };
  // Of the rank from which nothing has come for longest.
  Silence longest() const;
  // What the signs tell of this rank: what is written there. Null: nothing.
  void tell(const Progress* progress);
  std::uint64_t progress_of(int rank) const;  // 0: nothing is known
  // Nothing more is sent or heard: at once, for who has the turn, or when the thread has ended.
  void end() { ended_ = true; }
  void stop();

 private:
  struct Other {
    int rank;
    MPI_Request sending = MPI_REQUEST_NULL;
    std::uint64_t out = 0, in = 0;  // progress
    Clock::duration heard{};        // after so much of lived_
  };

  void run(const std::stop_token& stop);
  void beat();

  MPI_Comm comm_;
  std::chrono::milliseconds between_;
  std::recursive_mutex& turn_;  // guards what follows too
  bool ended_ = false;
  Clock::time_point beat_ = Clock::now();  // the last
  Clock::duration lived_{};                // without time in which this process was stopped
  std::vector<Other> others_;
  const Progress* progress_ = nullptr;
  std::mutex sleep_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses all others
};

}  // namespace cnn::allreduce
