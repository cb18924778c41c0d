#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allreduce/call_deadline.h"
#include "allreduce/transport.h"

namespace cnn::allreduce {

// The processes that a launcher such as mpirun has started as one run, like MPI_COMM_WORLD. One
// thread at a time uses it. No wait is endless: if a rank has failed, has ended or has been silent
// for too long, waiting for it throws PeerLost, which names it.
class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // All-gather: returns the text that each rank has passed, by rank. All ranks call it in the same
  // order.
  virtual std::vector<std::string> gather(std::string_view mine) = 0;
  // Returns a transport of messages between any two ranks, whose memory no peer can address. All
  // ranks call it in the same order. The world must outlive it.
  virtual std::unique_ptr<Transport> connect(std::size_t channels) = 0;

  // Sums the values over all ranks in place by the library of the launcher, as a reference for our
  // own algorithms. Blocks in the library, which does not notice a lost rank.
  virtual void all_reduce(std::span<float> values) = 0;
  // The same by a non-blocking call that is polled: slower, but throws PeerLost.
  virtual void polled_all_reduce(std::span<float> values) = 0;

  // Throws PeerLost if a rank that is still needed has failed or ended.
  virtual void check_peers() = 0;
  // Tells all other ranks that this one aborts the run. culprit: this rank, or the rank that it has
  // lost, which may be alive. Returns soon, whatever the others do.
  virtual void abort(int culprit, std::string_view why) noexcept = 0;
  // Returns whether rank 0 aborts with the same text, which it then prints, so that this rank need
  // not. Waits a moment for its notice.
  virtual bool rank_0_reports(std::string_view why) noexcept = 0;
  // Ends a run that went well. Blocks until all ranks have called it. Nothing else may be called
  // after it.
  virtual void finish() = 0;
};

struct WorldOptions {
  // The longest wait for a rank that sends heartbeats: longer than the longest step.
  std::chrono::milliseconds wait_timeout{300'000};
  // How long a rank of another host may send no heartbeat, or a process of this host be stopped,
  // before it counts as lost.
  std::chrono::milliseconds heartbeat_timeout{10'000};
  std::chrono::milliseconds heartbeat_interval{250};  // between two heartbeats to other hosts
  // The deadline of the calls that start and end MPI, which by themselves wait without end.
  CallDeadlineOptions start;
  // Whether to watch the processes of this host; false: treats all ranks as if on other hosts.
  bool watches_processes = true;
};

// The entry point of the module that is linked with MPI, which the program looks up by name.
struct WorldEntry {
  // Starts MPI. A process may call it once in its life.
  std::unique_ptr<World> (*open)(const WorldOptions& options) = nullptr;
};
inline constexpr const char* world_entry_name = "cnn_world_entry";
using WorldEntryOf = const WorldEntry* (*)();

}  // namespace cnn::allreduce
