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

#include "allreduce/mpi/abort_notice.h"
#include "allreduce/mpi/heartbeats.h"
#include "allreduce/watched_process.h"
#include "allreduce/world.h"

namespace cnn::allreduce {

// A world over MPI. It only makes non-blocking calls and polls them, because the blocking calls of
// MPI do not notice a lost rank. Several threads may use the world and its transports: the lock
// lets one of them call MPI at a time (MPI_THREAD_SERIALIZED).
class MpiWorld final : public World {
 public:
  explicit MpiWorld(const WorldOptions& options);

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::vector<std::string> gather(std::string_view mine) override;
  std::unique_ptr<Transport> connect(std::size_t channels) override;
  void all_reduce(std::span<float> values) override;
  void check_peers() override;
  void abort(int culprit, std::string_view why) noexcept override;
  void polled_all_reduce(std::span<float> values) override;
  bool rank_0_reports(std::string_view why) noexcept override;
  void finish() override;

  // Used by the transports. The lock that every call of MPI needs.
  std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }
  // Returns whether the request, which concerns the rank `other`, is complete.
  bool test(MPI_Request& request, int other);
  // One round of a wait for that rank; the caller does not hold the lock. Throws PeerLost as
  // check_peers(), and if the wait has timed out.
  void idle(int waits_for);
  // Ends the wait that idle() began.
  void busy() {
    contended_waits_ -= std::exchange(slept_, false) ? 1 : 0;
    if (std::exchange(waiting_, false) && heartbeats_) {
      heartbeats_->wait_for(-1);
    }
  }
  // As Transport::publish() and progress_of(), by heartbeats.
  void publish(const Progress* progress) {
    if (heartbeats_) {
      heartbeats_->publish(progress);
    }
  }
  std::uint64_t progress_of(int rank) const {
    return heartbeats_ ? heartbeats_->progress_of(rank) : 0;
  }
  // Throws PeerLost if `code`, the result of a call that concerns the rank `other`, is an error.
  void check_call(int code, int other);

 private:
  using Clock = std::chrono::steady_clock;

  // Starts to receive a message of gather(); returns false if none has come yet.
  bool start_receive(int from, std::string& text, MPI_Request& request);
  void complete(MPI_Request& request, int other);  // polls it to its end
  // Receives and forwards abort notices.
  void receive_notices();
  // Returns whether a wait goes on although a notice has come, for a few checks: what was sent
  // before the notice may tell this rank why the run ends.
  bool defers_notice();
  enum class Caller : bool { any, wait };
  void check_waiting();  // as check_peers(), in a wait
  // As check_peers(), without receiving notices. turn: the caller's lock, released in waits.
  void check_received(Caller caller, std::unique_lock<std::recursive_mutex>& turn);
  void throw_if_notified();
  bool last_notice_comes(std::unique_lock<std::recursive_mutex>& turn);
  void check_heartbeats();
  void watch_peers();
  void stop_calling_mpi();
  // Tells the others, then throws PeerLost. No call of MPI follows, because the caller frees memory
  // into which MPI may still write.
  [[noreturn]] void lost(int culprit, const std::string& what);
  [[noreturn]] void lost_contact(int other, const std::string& why);

  WorldOptions options_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, ranks_ = 1;
  std::recursive_mutex mutex_;
  std::string outgoing_;  // the message of gather() that MPI may still read
  struct LocalPeer {
    int rank;
    WatchedProcess process;
  };
  std::vector<LocalPeer> local_peers_;
  std::size_t next_check_ = 0;
  std::optional<AbortNotices> notices_;
  std::optional<AbortNotice> received_;   // the notice of another rank by which this one ends
  bool over_ = false;                     // The run is aborted: MPI is not called any more.
  bool failing_ = false;                  // A call of MPI has returned an error.
  bool waiting_ = false, slept_ = false;  // in this wait
  unsigned contended_waits_ = 0;          // how many further waits sleep instead of yielding
  unsigned checks_after_notice_ = 0;      // in waits
  Clock::time_point last_check_;
  Clock::duration waited_{};
  std::optional<Heartbeats> heartbeats_;  // declared last, as its thread calls MPI
};

}  // namespace cnn::allreduce
