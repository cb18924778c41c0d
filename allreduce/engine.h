#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "allreduce/simd/table.h"
#include "allreduce/step_list.h"
#include "allreduce/transport.h"

namespace cnn::allreduce {

// Runs the step list of one rank, as often as needed and without allocating. All ranks run the same
// sequence of engines, with buffers at the same offsets in their shared segments.
class Engine {
 public:
  // buffer: the pieces that the plan reduces as one buffer; they lie in the shared segment of the
  // transport if the plan addresses peers. wire: the message buffer of the engine of the same
  // bucket that this one replaces; empty: the engine allocates one. References must outlive the
  // engine. Throws Error if the plan needs more channels than the transport has, or a peer's memory
  // that is not addressable.
  Engine(Transport& transport, const simd::Loops& loops, RankPlan plan,
         std::span<const std::span<float>> buffer, Bytes wire = {});

  // All-reduce: replaces the buffer by the sum of all ranks' buffers times the factor. Blocks until
  // this rank's list is done. Throws PeerLost.
  void run(float factor);

  // Returns whether the first unfinished chunk of the latest run still has sums to make, that is
  // whether it is in the reduce phase.
  bool is_reducing() const;

  // Returns the buffer of the messages in the wire's type; empty: they lie in the reduced buffer.
  Bytes wire() const { return wire_; }

 private:
  struct Pieces {  // a range of pieces_
    std::uint32_t first = 0, count = 0;
  };
  // An action with resolved addresses, in flat tables.
  struct Resolved {
    Pieces own, wire, to;  // the range, the message as it is sent, the place where it arrives
    std::uint32_t first_sum = 0, sums = 0;
    // Whether to convert the range to the wire's type: only its first send does, as peers may read
    // the message after that.
    bool narrows = false;
  };
  struct ChunkState {
    std::vector<Resolved> actions;
    std::vector<bool> complete;  // by action: its message
    std::size_t next = 0, open_from = 0;
    bool arrived = false, done = false;
  };
  class Resolver;

  std::span<const Bytes> at(const Pieces& pieces) const {
    return std::span(pieces_).subspan(pieces.first, pieces.count);
  }
  bool advance(std::size_t chunk);  // returns whether it made progress
  bool step(std::size_t chunk, const Send& send);
  bool step(std::size_t chunk, const Receive& receive);
  bool step(std::size_t chunk, const Wait& wait);
  bool step(std::size_t chunk, const Barrier& barrier);
  bool step(std::size_t chunk, const Sum& sum);
  bool messages_complete(std::size_t chunk);
  bool complete(std::size_t chunk, std::size_t action);
  bool may_start(std::size_t chunk) const;
  std::optional<int> awaited_rank(std::size_t chunk) const;
  int awaited_rank() const;  // of the first chunk that waits

  Transport& transport_;
  const simd::Loops& loops_;
  RankPlan plan_;
  float factor_ = 1;
  std::vector<std::byte> scratch_;
  Bytes wire_;  // the buffer in the wire's type, if that is not f32
  std::vector<Bytes> pieces_;
  std::vector<simd::Sum> sums_;
  std::vector<simd::Operand> operands_;
  std::vector<float*> outputs_;
  std::vector<ChunkState> chunks_;
};

}  // namespace cnn::allreduce
