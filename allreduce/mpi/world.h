#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allreduce/mpi/heartbeats.h"
#include "allreduce/mpi/verdict.h"
#include "allreduce/watched_process.h"
#include "allreduce/world.h"

namespace cnn::allreduce {

// A world by MPI, which is polled and never waits itself: its own waits do not notice who is gone.
// It and its transports may be used by several threads, which take turns.
class MpiWorld final : public World {
 public:
  explicit MpiWorld(const WorldOptions& options);

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::vector<std::string> gather(std::string_view mine) override;
  std::unique_ptr<Transport> connect(std::size_t channels) override;
  void all_reduce(std::span<float> values) override;
  void look_around() override;
  void give_up(int culprit, std::string_view why) noexcept override;
  void watchful_all_reduce(std::span<float> values) override;
  bool first_says(std::string_view why) noexcept override;
  void finish() override;

  // For transports. One call of MPI at a time, under the lock.
  std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }
  bool test(MPI_Request& request, int other);  // whether it is complete
  // One turn of a wait for that rank, not under the lock. Throws PeerLost as look_around(), and if
  // it takes too long.
  void idle(int waits_for);
  void busy() {  // the wait is over
    crowded_ -= std::exchange(slept_, false) ? 1 : 0;
    if (std::exchange(idle_, false) && heartbeats_) {
      heartbeats_->wait_for(-1);
    }
  }
  // As Transport's, to and of those who send signs of life.
  void tell(const Progress* progress) {
    if (heartbeats_) {
      heartbeats_->tell(progress);
    }
  }
  std::uint64_t progress_of(int rank) const {
    return heartbeats_ ? heartbeats_->progress_of(rank) : 0;
  }
  // Throws PeerLost if the code of a call that concerns that rank is an error.
  void check_call(int code, int other);

 private:
  using Clock = std::chrono::steady_clock;

  // Begins to receive a message of a gathering; false: it has not come yet.
  bool take(int from, std::string& text, MPI_Request& request);
  void complete(MPI_Request& request, int other);  // waits for it
  void take_verdicts();
  void hear();
  void wait_for_last_words();
  void listen();  // throws PeerLost if a rank is silent
  void watch();
  void end_calls();
  // Tells the others first: once it has been thrown memory is freed into which MPI may still write,
  // and nothing more is asked of it.
  [[noreturn]] void lost(int culprit, const std::string& what);
  [[noreturn]] void miss(int other, const std::string& why);

  WorldOptions options_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, ranks_ = 1;
  std::recursive_mutex mutex_;
  std::string outgoing_;  // of a gathering, as long as MPI may read it
  struct Near {           // a rank of this machine
    int rank;
    WatchedProcess process;
  };
  std::vector<Near> near_;
  std::size_t next_look_ = 0;
  std::optional<Verdicts> verdicts_;
  std::optional<Verdict> heard_;       // from another rank
  bool over_ = false;                  // given up: MPI is not called any more
  bool failing_ = false;               // a call of MPI has returned an error
  bool idle_ = false, slept_ = false;  // in this wait
  unsigned crowded_ = 0;               // waits that are still taken to have others on the processor
  Clock::time_point looked_;
  Clock::duration waited_{};
  std::optional<Heartbeats> heartbeats_;  // last: its thread calls MPI
};

}  // namespace cnn::allreduce
