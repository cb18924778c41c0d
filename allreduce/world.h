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

// The processes that a launcher has started as one run: their number, and what connects any two of
// them, on whatever hosts. Used by one thread at a time. Nothing waits for ever: where a rank has
// failed, has ended or is silent for too long, who waits for it gets PeerLost, which names it.
class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Gathers what each rank has given, by rank. All ranks call it in the same order.
  virtual std::vector<std::string> gather(std::string_view mine) = 0;
  // Messages between any two ranks; none sees the memory of another. All ranks connect in the same
  // order. The world must outlive it.
  virtual std::unique_ptr<Transport> connect(std::size_t channels) = 0;

  // The sum over all ranks by the launcher's own library: what ours is compared with. Waits as long
  // as that does.
  virtual void all_reduce(std::span<float> values) = 0;

  // Throws PeerLost if a rank that is still needed has failed or ended.
  virtual void look_around() = 0;
  // Tells all others that this rank gives up, because of that one (itself, or the one that it has
  // lost, which may go on again). Returns soon, whatever they do.
  virtual void give_up(int culprit, std::string_view why) noexcept = 0;
  // The same by a call of that library which is slower, but notices a lost rank.
  virtual void watchful_all_reduce(std::span<float> values) = 0;

  // Whether rank 0 gives up for this very reason; waits a moment for it to say so. For who would
  // otherwise tell the user the same.
  virtual bool first_says(std::string_view why) noexcept = 0;
  // The run has ended well. Blocks until all ranks have come here; nothing else may be called then.
  virtual void finish() = 0;
};

struct WorldOptions {
  // How long one wait for a rank may take that gives signs of life: longer than any step does.
  std::chrono::milliseconds patience{300'000};
  // How long a rank may be silent whose process cannot be watched, as it is of another host, or be
  // stopped where it can.
  std::chrono::milliseconds silence{10'000};
  std::chrono::milliseconds between_beats{250};  // signs of life to other hosts
  // Deadline of the calls that set MPI up and end it, which by themselves wait without end.
  CallDeadlineOptions start;
  bool watches_processes = true;  // those of this host; false: as if all were of others
};

// The entry of the module that talks to MPI, by which the program finds it.
struct WorldEntry {
  // The process may open one world in its life.
  std::unique_ptr<World> (*open)(const WorldOptions& options) = nullptr;
};
inline constexpr const char* world_entry_name = "cnn_world_entry";
using WorldEntryOf = const WorldEntry* (*)();

}  // namespace cnn::allreduce
